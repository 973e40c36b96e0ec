"""Part 12: what a save remembers is what a save from nothing finds, whatever rules say.

    a random tree, random rules and settings → changes → a save, in one of the ways there are
    → a scan from nothing must agree; everything is captured, or said to be left out
    → now and then an older checkpoint is restored, compared with a naive copy, and undone

Some saves run while the tree changes: what they find is no state of it, but whatever they remember
must not mislead the next one. The ways: one engine, one for each step, one that is told of changes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint
from holdfast.domain.ids import CheckpointId
from holdfast.domain.trees.changes import ChangeType, tree_changes, visible_changes
from holdfast.engine.restore.plan import read_report
from holdfast.engine.stored_objects import list_entries
from tests.support.composition import SESSION, Composed, composed, configure, scan_from_nothing
from tests.support.left_out_model import Moment, restore_problems
from tests.support.ruled_trees import RuledTree, random_settings
from tests.support.tree_hash import debris, describe, differences
from tests.support.watched_workspaces import watched
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.scenes import remove_tree

pytestmark = [pytest.mark.requirement("RL-5", "CP-11", "CP-12", "RB-4", "AU-6"), pytest.mark.linux]

WAYS = ("plain", "reopened", "watched")
_OLD_ENOUGH_S = 0.03


class _Work:
    """One workspace with its tree, and a naive copy of each moment that was saved."""

    def __init__(self, rng: random.Random, top: Path, way: str) -> None:
        self._rng, self._way = rng, way
        self._root = top / "project"
        (top / "outside").mkdir(parents=True)
        self._root.mkdir()
        self._tree = RuledTree(rng, self._root, top / "outside")
        self._moments: dict[str, Moment] = {}

    def run(self) -> None:
        if self._rng.random() < 0.8:
            self._tree.grow()
        configure(self._root, max_manual_checkpoints=0, **random_settings(self._rng))
        for _ in range(self._rng.randrange(1, 3)):
            with self._engine() as opened:
                for _ in range(self._rng.randrange(1, 5)):
                    self._one_round(opened)
            configure(self._root, **random_settings(self._rng))

    @contextmanager
    def _engine(self) -> Iterator[Composed | None]:
        """None where each step is to open one of its own."""
        with ExitStack() as stack:
            if self._way == "reopened":
                yield None
            elif self._way == "watched":
                yield stack.enter_context(watched(self._root)).opened
            else:
                yield stack.enter_context(composed(self._root))

    def _one_round(self, opened: Composed | None) -> None:
        with ExitStack() as stack:
            opened = opened or stack.enter_context(composed(self._root))
            if self._moments and self._rng.random() < 0.3:
                self._go_back(opened)
            if self._rng.random() < 0.2:
                self._save_while_it_changes(opened)
            self._tree.change_much(self._rng.choice((0, 1, 1, 2, 5, 12)))
            if self._rng.random() < 0.5:
                threading.Event().wait(_OLD_ENOUGH_S)
            if self._rng.random() < 0.3:
                opened.engine.scan()
            self._save(opened)

    def _save(self, opened: Composed) -> None:
        before = describe(self._root, mtimes=True)
        saved = opened.save()
        assert differences(describe(self._root, mtimes=True), before) == []
        vault, skipped = opened.engine.vault, read_report(opened.engine.vault, saved)
        alone = scan_from_nothing(vault)
        said = {(s.path, s.describe()) for s in skipped}
        otherwise = said ^ {(s.path, s.describe()) for s in alone.skipped}
        assert not otherwise, otherwise
        assert saved.tree == alone.tree
        moment = Moment.of(self._root, skipped)
        assert _listed(opened, saved) == moment.captured, "captured, or said to be left out"
        if saved.parent is not None:
            assert saved.changed == _counted(opened, saved)
        self._moments[saved.id] = moment

    def _save_while_it_changes(self, opened: Composed) -> None:
        """What is found then is nothing to compare with, and must not spoil what is found later."""
        with ThreadPoolExecutor(1) as pool:
            changing = pool.submit(self._tree.change_much, 20)
            opened.save()
            while not changing.done():
                opened.save()
            changing.result()

    def _go_back(self, opened: Composed) -> None:
        """To a checkpoint, and then perhaps back again."""
        target = self._rng.choice(list(self._moments))
        then = self._moments[target]
        now = Moment.of(self._root, scan_from_nothing(opened.engine.vault).skipped)
        outcome = opened.restore(target, best_effort=True)
        not_done = {problem.path for problem in (*outcome.skipped, *outcome.conflicts)}
        saved = _listed(opened, opened.engine.resolve(SESSION, outcome.safety))
        # What the rules of the checkpoint leave out stays, and is listed.
        kept = {one.path for one in outcome.kept if one.whole}
        assert not kept & then.captured
        then = replace(then, left_out=then.left_out | kept)
        problems = restore_problems(self._root, then, now, saved, not_done)
        assert not problems, problems
        assert outcome.verified
        assert debris(self._root) == []
        if outcome.recorded and self._rng.random() < 0.5:
            between = describe(self._root).keys()
            undone = opened.undo()
            troubles = [*undone.skipped, *undone.conflicts]
            assert not troubles, troubles
            before = replace(now, left_out=frozenset(now.state.keys() - saved))
            problems = restore_problems(self._root, before, now, saved, set(), between)
            assert not problems, problems


def _listed(opened: Composed, checkpoint: Checkpoint) -> set[bytes]:
    entries = list_entries(opened.engine.vault.load_tree, checkpoint.tree, b"")
    return {path for path, _ in entries}


def _counted(opened: Composed, saved: Checkpoint) -> ChangeCounts:
    counts = dict.fromkeys(ChangeType, 0)
    vault = opened.engine.vault
    parent = vault.catalog.checkpoint(SESSION, CheckpointId(saved.parent or ""))
    assert parent is not None
    for change in visible_changes(tree_changes(vault.load_tree, parent.tree, saved.tree)):
        counts[change.type] += 1
    return ChangeCounts(
        counts[ChangeType.ADDED], counts[ChangeType.MODIFIED], counts[ChangeType.REMOVED]
    )


@pytest.mark.parametrize("way", WAYS)
def test_saves_with_caches_match_the_files_and_restore_exactly(
    campaign: Campaign,
    tmp_path: Path,
    quick_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    def case(case: Case) -> None:
        top = (quick_disk, tmp_path)[case.number % 2] / f"case-{case.number}"
        monkeypatch.setenv("HOLDFAST_HOME", str(top / "home"))
        try:
            _Work(case.rng(way), top, way).run()
        finally:
            remove_tree(top)

    title = "random trees, rules and settings: saves with and without caches agree"
    campaign.run(Scenario(12, f"remembering-{way}", title), case, slice_cases=12)
