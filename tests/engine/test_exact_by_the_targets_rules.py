"""A restore looks at the workspace with the rules of both sides: doing it twice changes nothing."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import NothingToUndo, RestoreConflict
from holdfast.domain.outcomes import RestoreOutcome
from holdfast.engine.undo.undo import next_step
from tests.support.composition import composed, configure
from tests.support.hostile_trees import fill
from tests.support.ruled_trees import RuledTree, random_settings
from tests.support.tree_hash import Node, describe, differences

pytestmark = pytest.mark.requirement("RB-14")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


def restore_twice(session: SessionCheckpointer, target: str) -> RestoreOutcome:
    """The outcome of the first restore; the second finds nothing to do, and undo and redo are
    exact."""
    workspace = session.workspace
    before = describe(workspace, mtimes=True)
    first = session.restore_checkpoint(target)
    after = describe(workspace, mtimes=True)
    assert session.plan_restore(target).steps == ()
    session.undo()
    assert differences(describe(workspace, mtimes=True), before) == []
    session.redo()
    assert differences(describe(workspace, mtimes=True), after) == []
    assert session.restore_checkpoint(target).steps == ()
    assert differences(describe(workspace, mtimes=True), after) == []
    return first


@pytest.mark.requirement("RB-2")
def test_what_a_later_rule_hid_is_saved_and_removed_at_once(workspace: Path) -> None:
    fill(workspace / "code", b"1")
    fill(workspace / ".gitignore", b"*.log\n")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("before")
        fill(workspace / ".gitignore", b"*.log\ndist/\n")
        fill(workspace / "dist/app.js", b"built")
        fill(workspace / "dist/deep/run.log", b"ignored by both")
        (workspace / "dist/empty").mkdir()
        planned = {step.path for step in session.plan_restore(target).steps}
        assert {b"dist/app.js", b"dist/empty"} <= planned
        outcome = restore_twice(session, target)
    assert not (workspace / "dist/app.js").exists()
    assert not (workspace / "dist/empty").exists()
    assert (workspace / "dist/deep/run.log").read_bytes() == b"ignored by both"
    assert {kept.path for kept in outcome.kept} == {b"dist", b"dist/deep"}


def test_rules_are_followed_in_every_directory_and_kind_of_file(workspace: Path) -> None:
    fill(workspace / "a/keep", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("before")
        fill(workspace / "a/.gitignore", b"*.out\n")
        fill(workspace / "a/x.out", b"made")
        fill(workspace / "b/.holdfastignore", b"hidden\n")
        fill(workspace / "b/hidden", b"made")
        restore_twice(session, target)
    assert sorted(describe(workspace)) == [b"a", b"a/keep"]


def test_what_the_checkpoints_rules_leave_out_stays_and_is_listed(workspace: Path) -> None:
    fill(workspace / ".gitignore", b"dist/\n*.key\n")
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("before")
        fill(workspace / ".gitignore", b"")
        fill(workspace / "dist/a/b", b"built")
        fill(workspace / "my.key", b"secret")
        fill(workspace / "junk", b"junk")
        session.checkpoint("the agent took the rules away")
        outcome = restore_twice(session, target)
    assert (workspace / "dist/a/b").read_bytes() == b"built"
    assert (workspace / "my.key").read_bytes() == b"secret"
    assert not (workspace / "junk").exists()
    assert {kept.path for kept in outcome.kept} == {b"dist", b"my.key"}


@pytest.mark.requirement("RB-2")
def test_undo_removes_what_the_restore_brought_even_if_rules_hide_it_again(
    workspace: Path,
) -> None:
    fill(workspace / "dist/a", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("with dist")
        shutil.rmtree(workspace / "dist")
        fill(workspace / ".gitignore", b"dist/\n")
        session.checkpoint("without")
        before = describe(workspace, mtimes=True)
        session.restore(target)
        assert (workspace / "dist/a").read_bytes() == b"1"
        session.undo()
        assert differences(describe(workspace, mtimes=True), before) == []


def test_a_directory_that_ignores_itself_stays(workspace: Path) -> None:
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("before")
        fill(workspace / "tool-cache/.gitignore", b"*\n")
        fill(workspace / "tool-cache/data", b"x")
        fill(workspace / "code", b"2")
        restore_twice(session, target)
    assert (workspace / "tool-cache/data").read_bytes() == b"x"


def test_only_chosen_paths_are_looked_at_with_the_checkpoints_rules(workspace: Path) -> None:
    fill(workspace / "dist/a", b"1")
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("before")
        fill(workspace / ".gitignore", b"dist/\nother/\n")
        fill(workspace / "dist/b", b"made")
        fill(workspace / "other/c", b"made")
        outcome = session.restore_checkpoint(target, ["dist"])
        assert [step.path for step in outcome.steps] == [b"dist/b"]
        assert session.restore_checkpoint(target, ["dist"]).steps == ()
    assert (workspace / "other/c").read_bytes() == b"made"


@pytest.mark.requirement("BX-7")
def test_what_was_left_out_and_is_gone_is_listed(workspace: Path) -> None:
    configure(workspace, max_file_size=1000)
    fill(workspace / ".gitignore", b".env\n")
    fill(workspace / ".env", b"SECRET=1")
    fill(workspace / "models/large.bin", b"x" * 2000)
    fill(workspace / "node_modules/m/index.js", b"m")
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("before")
        for name in ("code", ".env", "models/large.bin"):
            (workspace / name).unlink()
        shutil.rmtree(workspace / "node_modules")
        planned = session.plan_restore(target)
        outcome = session.restore_checkpoint(target)
    assert planned.missing == outcome.missing
    assert {(gone.path, gone.is_cache) for gone in outcome.missing} == {
        (b".env", False),
        (b"models/large.bin", False),
        (b"node_modules", True),
    }
    assert (outcome.verified, outcome.compared) == (True, 1)


@pytest.mark.requirement("BX-7")
def test_a_file_too_large_to_be_saved_stays_and_is_listed(workspace: Path) -> None:
    configure(workspace, max_file_size=1000)
    fill(workspace / "old.bin", b"x" * 2000)
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        target = session.checkpoint("before")
        fill(workspace / "new.bin", b"x" * 2000)
        fill(workspace / "code", b"2")
        outcome = restore_twice(session, target)
    assert {kept.path for kept in outcome.kept} == {b"new.bin"}
    assert (workspace / "new.bin").stat().st_size == 2000


def comparable(workspace: Path) -> dict[bytes, Node]:
    """Without names that a left-out file shares with others, and without the shared memory of
    databases: no checkpoint has either."""
    found = describe(workspace, mtimes=True).items()
    return {path: replace(node, names=()) for path, node in found if not path.endswith(b"-shm")}


@pytest.mark.requirement("RB-2")
@pytest.mark.parametrize("seed", range(60))
def test_random_changes_of_rules_and_files_are_restored_once_and_for_all(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    workspace = tmp_path / "project"
    workspace.mkdir()
    configure(workspace, **random_settings(rng))
    tree = RuledTree(rng, workspace, tmp_path / "outside")
    tree.grow()
    with SessionCheckpointer(workspace, "s") as session:
        targets = []
        for _ in range(3):
            targets.append(session.checkpoint("why"))
            tree.change_much(12)
        for target in rng.sample(targets, 3):
            before = comparable(workspace)
            try:
                session.restore_checkpoint(target)
            except RestoreConflict:  # a pipe, say, is in the way
                continue
            assert session.plan_restore(target).steps == ()
            assert session.restore_checkpoint(target).steps == ()
            session.undo()
            session.undo()
            assert differences(comparable(workspace), before) == []
            tree.change_much(5)


def walk(workspace: Path, *verbs: str) -> list[bytes]:
    """What the file `code` holds after each undo and redo of the workspace."""
    seen = []
    with composed(workspace) as opened:
        for verb in verbs:
            step = opened.engine.last_step() if verb == "undo" else next_step(opened.engine.vault)
            assert opened.engine.restore(step.request).steps
            seen.append((workspace / "code").read_bytes())
    return seen


@pytest.mark.requirement("RB-11")
@pytest.mark.parametrize(
    "rules",
    [
        (b"", b"", b""),
        (b"", b"", b"x.log\n"),
        (b"x.log\n", b"", b""),
        (b"", b"x.log\n", b"x.log\n"),
        (b"", b"x.log\n", b""),
        (b"x.log\n", b"", b"x.log\n"),
    ],
)
def test_undo_and_redo_take_one_step_at_a_time_where_rules_change(
    workspace: Path, rules: tuple[bytes, ...]
) -> None:
    fill(workspace / "x.log", b"in the way of nobody")
    with composed(workspace) as opened:
        for number, ignored in enumerate(rules):
            fill(workspace / ".gitignore", ignored)
            fill(workspace / "code", b"%d" % number)
            opened.save()
        assert walk(workspace, "undo", "undo", "redo", "redo") == [b"1", b"0", b"1", b"2"]
        assert walk(workspace, "undo", "undo", "redo", "redo") == [b"1", b"0", b"1", b"2"]
        opened.restore("HEAD~1")
        assert walk(workspace, "undo", "undo", "undo") == [b"2", b"1", b"0"]
        with pytest.raises(NothingToUndo):
            opened.engine.last_step()
    assert (workspace / "x.log").read_bytes() == b"in the way of nobody"
