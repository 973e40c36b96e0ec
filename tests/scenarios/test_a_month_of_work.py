"""A month of work with a small budget: protection never ends, and what people chose stays."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from holdfast.domain.checkpoints import Checkpoint, Kind, SkipReason
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.repair.check import run_checks
from holdfast.engine.sessions.approval import approve
from holdfast.engine.sessions.lifecycle import end
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from tests.support.clocks import DAY_NS
from tests.support.composition import Composed, SteppedClock, composed, configure
from tests.support.hostile_trees import noise

BUDGET = 12_000_000
CHURN_BYTES = 900_000
"""Of new content a day: the budget would be used up after two weeks."""
BUILDS = 6


class Month:
    """What was saved, as an independent copy, and what may never go."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.sources: dict[CheckpointId, bytes] = {}
        self.promised: dict[CheckpointId, bytes] = {}
        self.of_session: dict[SessionId, list[CheckpointId]] = {}
        self.bundles: dict[CheckpointId, bytes] = {}
        self.left_out_days = 0
        self.looked_back = 0

    def save(
        self, opened: Composed, session: SessionId, kind: Kind, name: str | None = None
    ) -> Checkpoint:
        source = (self.project / "source.py").read_bytes()
        outcome = opened.engine.save(session, make_intent("work", name=name), kind=kind)
        left_out = {s.path for s in outcome.skipped if s.reason is SkipReason.OVER_BUDGET}
        assert b"source.py" not in left_out
        self.left_out_days += bool(left_out)
        made = outcome.checkpoint
        self.sources[made.id] = source
        bundle = self.project / "bundle.js"
        self.bundles[made.id] = bundle.read_bytes() if bundle.exists() else b""
        self.of_session.setdefault(session, []).append(made.id)
        if kind is Kind.MANUAL or name is not None:
            self.promised[made.id] = source
        return made


@pytest.mark.requirement("ST-2", "ST-3", "SE-11")
def test_a_month_of_churn_within_a_small_budget(quick_disk: Path, rng: random.Random) -> None:
    project = quick_disk / "shop"
    project.mkdir()
    (project / "source.py").write_bytes(b"begun")
    configure(project, budget=BUDGET)
    month = Month(project)
    clock = SteppedClock(time.time_ns() - 40 * DAY_NS)
    for day in range(30):
        with composed(project, clock=clock) as opened:
            session = SessionId(f"day {day}")
            _work_a_day(month, opened, session, clock, day, rng)
            if day % 3:  # every third agent is killed, and its session never ended
                end(opened.engine, session)
        clock.now = clock.now - clock.now % DAY_NS + DAY_NS
    with composed(project, clock=clock) as opened:
        vault = opened.engine.vault
        assert list(run_checks(vault, data=True, progress=NoProgress())) == []
        for identifier, source in month.promised.items():
            _require(opened, project, identifier, source)
        for identifier in month.of_session[SessionId("day 29")]:
            _require(opened, project, identifier, month.sources[identifier])
            bundle = month.bundles[identifier]
            assert not bundle or (project / "bundle.js").read_bytes() == bundle
        assert month.left_out_days == 0
        assert month.looked_back > 29


def _work_a_day(
    month: Month,
    opened: Composed,
    session: SessionId,
    clock: SteppedClock,
    day: int,
    rng: random.Random,
) -> None:
    project, vault = month.project, opened.engine.vault
    yesterday = month.of_session.get(SessionId(f"day {day - 1}"), [])
    month.save(opened, session, Kind.INITIAL)
    left: set[CheckpointId] = set()
    for build in range(BUILDS):
        (project / "bundle.js").write_bytes(noise(CHURN_BYTES // BUILDS, rng.randrange(1 << 30)))
        for edit in range(3):
            source = f"day {day}, build {build}, edit {edit}".encode()
            (project / "source.py").write_bytes(source)
            kind = rng.choice([Kind.TOOL, Kind.TOOL, Kind.RISKY, Kind.MESSAGE])
            month.save(opened, session, kind)
            clock.now += DAY_NS // 60
            assert vault.space.size_bytes() <= BUDGET + 1_500_000  # with the logs of databases
        if build == 2 and day % 5 == 0:
            made = month.save(opened, session, Kind.RISKY)
            opened.engine.vault.story.annotate(
                session, made.id, "keep this", author=None, at_ns=clock.now
            )
            month.promised[made.id] = month.sources[made.id]
        if build == 3 and day % 5 == 1:
            month.save(opened, session, Kind.MANUAL)
        if build == 4 and day % 5 == 2:
            month.save(opened, session, Kind.TOOL, name=f"named on day {day}")
        if build == 5 and day % 5 == 3:
            approved = approve(opened.engine, session, "good").approved
            month.promised[approved.id] = (project / "source.py").read_bytes()
        left = {one.id for one in all_checkpoints(vault.catalog)}
        # It ended at three tenths of its day, so for as long today it was active of late.
        if clock.now % DAY_NS < DAY_NS // 4:
            month.looked_back += bool(yesterday)
            assert set(yesterday) <= left, "nothing of the last 24 hours is gone"
    assert set(month.of_session[session]) <= left, "nothing of today is gone"
    assert month.promised.keys() <= left


def _require(opened: Composed, project: Path, identifier: CheckpointId, source: bytes) -> None:
    vault = opened.engine.vault
    (session,) = [one.session_id for one in all_checkpoints(vault.catalog) if one.id == identifier]
    opened.engine.restore(opened.engine.restore_request(session, identifier))
    assert (project / "source.py").read_bytes() == source
