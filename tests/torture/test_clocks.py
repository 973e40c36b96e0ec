"""Part 8: clocks that jump, stand at 1970 or in 2100, change to summer time; files from any time.

Order is the sequence number, whatever the clock said (I7). A reference by time means the newest
checkpoint, in that order, whose own clock did not say later. Retention at a wrong time drops
nothing that is kept for ever, and nothing that undo needs.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast.api.session import SessionCheckpointer
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import NothingToUndo, UnknownReference
from holdfast.domain.trees.entries import storable_ns
from holdfast.engine.retention.eviction import make_room
from tests.interfaces.cli.command_line import run
from tests.support.composition import SESSION, Composed, SteppedClock, composed
from tests.support.tree_hash import describe, differences
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.scenes import State, remove_tree, write

pytestmark = pytest.mark.requirement("RL-6")

_SECOND_NS = 10**9
_HOUR_NS = 3600 * _SECOND_NS
_ZONES = ("UTC", "CET-1CEST,M3.5.0,M10.5.0/3", "NZST-12NZDT,M9.5.0,M4.1.0/3", "XXX+11:30")
_CENTRAL_EUROPE = _ZONES[1]
_SPRING = datetime(2026, 3, 29, 1, tzinfo=UTC)
_AUTUMN = datetime(2026, 10, 25, 1, tzinfo=UTC)
_STEPS = 9


def _ns(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


_MOMENTS_NS = (
    -_HOUR_NS,
    -1,
    0,
    1,
    _SECOND_NS,
    _ns(_SPRING) - 1,
    _ns(_SPRING),
    _ns(_AUTUMN) - _HOUR_NS,
    _ns(_AUTUMN),
    _ns(datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC)),
    _ns(datetime(2100, 2, 28, 23, 59, 59, tzinfo=UTC)),
    _ns(datetime(2262, 4, 1, tzinfo=UTC)),
)


@contextmanager
def _zone(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        yield
    time.tzset()


@dataclass(slots=True)
class _Model:
    """What was done, in order, kept beside the store."""

    made: list[Checkpoint] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)

    def at(self, moment_ns: int) -> str | None:
        found = [c.id for c in self.made if c.created_at_ns <= moment_ns]
        return found[-1] if found else None


def _resolved(opened: Composed, reference: str) -> str | None:
    try:
        return opened.engine.resolve(SESSION, reference).id
    except UnknownReference:
        return None


def test_work_under_clocks_that_jump(
    campaign: Campaign, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = quick_disk / "project"
    monkeypatch.setenv("HOLDFAST_HOME", str(quick_disk / "home"))

    def case(case: Case) -> None:
        rng = case.rng()
        remove_tree(quick_disk / "home")
        remove_tree(project)
        write(project / "file", b"")
        clock = SteppedClock(time.time_ns())
        with _zone(rng.choice(_ZONES)), composed(project, clock=clock) as opened:
            model = _Model()
            for step in range(_STEPS):
                _jump(clock, rng)
                _act(opened, project, model, rng, step)
                _require_order(opened, model)
                _require_references(opened, model, clock, rng)
            _require_listing(project, model)

    title = (
        "saves, restores, undo, retention and references while the clock jumps, in any time zone"
    )
    campaign.run(Scenario(8, "clock", title), case, slice_cases=12)


def _jump(clock: SteppedClock, rng: random.Random) -> None:
    how = rng.randrange(4)
    if how == 0:
        clock.now -= _HOUR_NS
    elif how == 1:
        clock.now += rng.randrange(3 * 24) * _HOUR_NS
    elif how == 2:
        clock.now = rng.choice(_MOMENTS_NS)


def _act(opened: Composed, project: Path, model: _Model, rng: random.Random, step: int) -> None:
    what = rng.random() if model.made else 0.0
    if what < 0.5:
        # Of another size each time: the files' own clock is that of the machine.
        write(project / "file", b"x" * (step + 1))
        write(project / f"dir/{rng.randrange(4)}", b"y" * (step + 1))
        model.made.append(opened.save())
        model.states[model.made[-1].id] = describe(project)
    elif what < 0.75:
        chosen = rng.choice(model.made)
        before = describe(project)
        done = opened.restore(chosen.id)
        assert differences(describe(project), model.states[chosen.id]) == []
        _prune(opened, model)
        if done.recorded:  # else there was nothing to do, and is nothing to undo
            opened.undo()
        assert differences(describe(project), before) == []
    elif what < 0.9:
        with contextlib.suppress(NothingToUndo):
            opened.undo()
    else:
        _prune(opened, model)


def _prune(opened: Composed, model: _Model) -> None:
    """Whatever time it is, what people saved stays."""
    with opened.engine.vault.lock.hold():
        room = make_room(opened.engine.vault, opened.engine.vault.settings.budget)
    assert not {d.checkpoint.id for d in (*room.expired, *room.evicted)} & {
        c.id for c in model.made
    }


def _require_order(opened: Composed, model: _Model) -> None:
    catalog = opened.engine.vault.catalog
    assert [c.id for c in catalog.history(SESSION)] == [c.id for c in reversed(model.made)]
    assert _resolved(opened, "initial") == (model.made[0].id if model.made else None)
    everything = catalog.history(SESSION, records=True)
    assert [c.sequence for c in everything] == sorted(
        (c.sequence for c in everything), reverse=True
    )


def _require_references(
    opened: Composed, model: _Model, clock: SteppedClock, rng: random.Random
) -> None:
    assert _resolved(opened, "@{now}") == model.at(clock.now)
    hours = rng.randrange(100)
    assert _resolved(opened, f"@{{{hours} hours ago}}") == model.at(clock.now - hours * _HOUR_NS)
    moment = datetime.fromtimestamp(rng.choice(_MOMENTS_NS) // _SECOND_NS, tz=UTC)
    assert _resolved(opened, f"@{{{moment.isoformat()}}}") == model.at(_ns(moment))
    if model.made:
        made = rng.choice(model.made)
        said = datetime.fromtimestamp(made.created_at_ns // _SECOND_NS, tz=UTC) + timedelta(
            seconds=1
        )
        local = said.astimezone()
        assert _resolved(opened, f"@{{{local.isoformat()}}}") == model.at(_ns(said))


def _require_listing(project: Path, model: _Model) -> None:
    """People and programs see them in the order in which they were made."""
    answer = run("-C", str(project), "--json", "log", "--session", SESSION)
    assert answer.status == 0, answer
    assert [row["id"] for row in answer.json] == [c.id for c in reversed(model.made)]
    assert run("-C", str(project), "log", "--session", SESSION).status == 0
    with SessionCheckpointer.load(project, SESSION) as session:
        for summary, checkpoint in zip(session.summaries(), reversed(model.made), strict=True):
            since = summary.timestamp - datetime(1970, 1, 1, tzinfo=UTC)
            assert abs(since - timedelta(microseconds=checkpoint.created_at_ns / 1000)) < timedelta(
                milliseconds=1
            )


def _from_central_europe(local: datetime) -> datetime:
    """By the rule itself. Of two moments the first; of a time in the hour that the change leaves
    out, the earlier of the two that it could mean."""
    winter, summer = local - timedelta(hours=1), local - timedelta(hours=2)
    return winter if winter < _SPRING or summer >= _AUTUMN else summer


def test_references_by_local_time_around_the_changes_of_the_clock(
    campaign: Campaign, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = quick_disk / "project"
    monkeypatch.setenv("HOLDFAST_HOME", str(quick_disk / "home"))
    write(project / "file", b"")
    clock = SteppedClock(0)
    model = _Model()
    with _zone(_CENTRAL_EUROPE), composed(project, clock=clock) as opened:
        for change in (_SPRING, _AUTUMN):
            for minutes in range(-240, 241, 20):
                clock.now = _ns(change + timedelta(minutes=minutes))
                model.made.append(opened.save())

        def case(case: Case) -> None:
            rng = case.rng()
            around = rng.choice((_SPRING, _AUTUMN)) + timedelta(minutes=rng.randint(-300, 420))
            meant = _from_central_europe(around)
            said = around.strftime(rng.choice(("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:00")))
            assert _resolved(opened, f"@{{{said}}}") == model.at(_ns(meant)), said

        title = "references by local time around daylight-saving changes"
        campaign.run(Scenario(8, "summer-time", title), case, slice_cases=100)


def _any_time_ns(rng: random.Random) -> int:
    years = rng.choice((-3000, -400, -292, -100, -1, 0, 1, 60, 74, 130, 240, 292, 300, 400, 5000))
    return years * 365 * 24 * _HOUR_NS + rng.choice((-1, 0, 1, 999_999_999, rng.randrange(10**15)))


@pytest.mark.requirement("RB-9")
def test_files_with_times_of_any_age(
    campaign: Campaign, quick_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def case(case: Case) -> None:
        rng = case.rng()
        root = (quick_disk, tmp_path)[case.number % 2]
        monkeypatch.setenv("HOLDFAST_HOME", str(root / "home"))
        project = root / "project"
        for path in (root / "home", project):
            remove_tree(path)
        files = ("file", "dir/file", "dir/deep/other")
        for file in files:
            write(project / file, rng.randbytes(10))
        (project / "link").symlink_to("file")
        with composed(project) as opened:
            for turn in range(3):
                paths = [project / p for p in (*files, "link", "dir", "dir/deep")]
                for path in paths:
                    with contextlib.suppress(OverflowError, OSError):
                        at = _any_time_ns(rng)
                        os.utime(path, ns=(at, at), follow_symlinks=False)
                state = describe(project, mtimes=True)
                made = opened.save()
                again = opened.save()
                assert again.tree == made.tree, "nothing has changed"
                _wreck(project, rng, turn)
                opened.restore(made.id)
                found = describe(project, mtimes=True)
                assert {p: n.content for p, n in found.items()} == {
                    p: n.content for p, n in state.items()
                }
                for name, node in found.items():
                    was_ns = state[name].mtime_ns
                    assert node.mtime_ns in (was_ns, storable_ns(was_ns)), name

    title = "files, links and directories with times from long before 1970 to long after 2262"
    campaign.run(Scenario(8, "file-times", title), case, slice_cases=12)


def _wreck(project: Path, rng: random.Random, turn: int) -> None:
    for name in ("file", "dir/file", "link"):
        what = rng.randrange(3)
        if what == 0:
            (project / name).unlink(missing_ok=True)
        elif what == 1:
            (project / name).unlink(missing_ok=True)
            write(project / name, b"z" * (turn + 20))
