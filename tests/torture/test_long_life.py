"""Part 9: a long life of edits and checkpoints, with retention and collections that are cut off."""

from __future__ import annotations

import random
import time
import zlib
from hashlib import sha1
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.repair.check import run_checks
from holdfast.engine.retention.cleanup import cleanup, collect
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from holdfast.testing.faulty_filesystem import FaultyFilesystem, Kill, Killed
from tests.support.clocks import DAY_NS
from tests.support.composition import Composed, SteppedClock, composed, configure
from tests.support.tree_hash import Node, describe, differences
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.scenes import remove_tree

pytestmark = pytest.mark.requirement("RL-8", "ST-2", "ST-3", "PF-4")

_SESSION = SessionId("s")
_FILES = 40
_EDITS = 20
_BUDGET_BYTES = 16_000_000
_CHECKED_EVERY = 10
_SIZED_FROM = 1_000
"""Of so many checkpoints on it is promised how small a store is (PF-4)."""
_RULES = {"tool": {"most": 60}, "safety": {"most": 2}, "restore": {"most": 2}}


class _Life:
    """One workspace, edited line by line, and what each of its checkpoints holds."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.states: dict[str, dict[bytes, Node]] = {}
        self.saved = 0
        self._blobs: set[bytes] = set()
        self.shadow_bytes = 0
        self.most_bytes = 0

    def begin(self, rng: random.Random) -> None:
        for number in range(_FILES):
            path = self.project / f"package{number % 7}" / f"module{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(path, "".join(_line(rng) for _ in range(rng.randint(20, 300))))
        configure(
            self.project,
            retention=_RULES,
            budget=_BUDGET_BYTES,
            max_manual_checkpoints=0,
        )

    def edit(self, rng: random.Random) -> None:
        for path in rng.sample(sorted(self.project.rglob("*.py")), rng.randint(1, 3)):
            lines = path.read_text().splitlines(keepends=True)
            at = rng.randrange(len(lines))
            lines[at : at + rng.randint(0, 2)] = [_line(rng) for _ in range(rng.randint(1, 3))]
            self._write(path, "".join(lines))

    def _write(self, path: Path, text: str) -> None:
        """Counts what a shadow repository would have stored at the least: each new content by
        itself, and nothing for directories, commits and blocks of the disk."""
        data = text.encode()
        path.write_bytes(data)
        if (name := sha1(data, usedforsecurity=False).digest()) not in self._blobs:
            self._blobs.add(name)
            self.shadow_bytes += len(zlib.compress(b"blob %d\0%s" % (len(data), data)))

    def save(self, opened: Composed, rng: random.Random) -> None:
        kind = Kind.MANUAL if rng.random() < 0.01 else Kind.TOOL
        made = opened.engine.save(_SESSION, make_intent(f"edit {self.saved}"), kind=kind)
        self.states[made.checkpoint.id] = describe(self.project)
        self.saved += 1


def _days_later() -> SteppedClock:
    """Nothing of a recent session is thinned."""
    return SteppedClock(time.time_ns() + 2 * DAY_NS)


def _line(rng: random.Random) -> str:
    return (
        f"{' ' * rng.randrange(0, 12)}{rng.choice(_WORDS)}_{rng.randrange(500)} = {rng.random()}\n"
    )


_WORDS = ("total", "index", "buffer", "session", "handler", "result", "cache", "token")


def test_a_long_life_with_retention_and_interrupted_collection(
    campaign: Campaign, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(quick_disk / "home"))
    life = _Life(quick_disk)
    interrupted = 0

    def case(case: Case) -> None:
        """Twenty edits, each saved; then a cleanup that is killed at some call, or not."""
        nonlocal interrupted
        rng = case.rng()
        if not life.project.exists():
            life.begin(rng)
        with composed(life.project) as opened:
            for _ in range(_EDITS):
                life.edit(rng)
                life.save(opened, rng)
        fs = FaultyFilesystem(LocalFilesystem(), {rng.randrange(1, 120): Kill()})
        try:
            with composed(life.project, fs=fs, clock=_days_later()) as opened:
                cleanup(opened.engine, NoProgress())
        except Killed:
            interrupted += 1
            fs.release()
        _require_sound(life, rng, thorough=case.number % _CHECKED_EVERY == 0)
        campaign.note = (
            f"{life.saved:,} checkpoints, {interrupted:,} collections cut off; the store at most"
            f" {life.most_bytes / 1e6:.1f} MB, a shadow repository at least"
            f" {life.shadow_bytes / 1e6:.1f} MB"
        )

    title = "20 edits and checkpoints, then a cleanup killed at a random call"
    campaign.run(Scenario(9, "long-life", title), case, slice_cases=4)
    with composed(life.project, clock=_days_later()) as opened:
        cleanup(opened.engine, NoProgress())
        kept = {checkpoint.id for checkpoint in all_checkpoints(opened.engine.vault.catalog)}
        assert opened.engine.vault.space.size_bytes() <= _BUDGET_BYTES
        with opened.engine.vault.lock.hold():
            collect(opened.engine.vault)
        assert list(run_checks(opened.engine.vault, data=True, progress=NoProgress())) == []
        if life.saved >= _SIZED_FROM:
            assert opened.engine.vault.space.size_bytes() <= life.shadow_bytes / 2
        for identifier in kept & life.states.keys():
            opened.restore(identifier)
            assert differences(life.states[identifier], describe(life.project)) == []
    remove_tree(life.project)


def _require_sound(life: _Life, rng: random.Random, *, thorough: bool) -> None:
    with composed(life.project) as opened:
        vault = opened.engine.vault
        assert list(run_checks(vault, data=thorough, progress=NoProgress())) == []
        life.most_bytes = max(life.most_bytes, vault.space.size_bytes())
        assert life.most_bytes <= _BUDGET_BYTES
        kept = [c.id for c in vault.catalog.history(_SESSION) if c.id in life.states]
        chosen = rng.choice(kept)
        opened.restore(chosen)
        assert differences(life.states[chosen], describe(life.project)) == []
