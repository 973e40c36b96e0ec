"""Plans, records, undo and redo: a restore is part of history and can be undone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import NotFound, NothingToUndo, Refused, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.restore.plan import StepType
from tests.behind_the_api import engine_of
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot, line_end
from tests.support.tree_hash import debris, describe, differences

pytestmark = pytest.mark.both_stores


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"0")
    return workspace


@pytest.mark.requirement("RB-2")
def test_undo_and_redo_walk_back_and_forth_through_all_restores(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        states = []
        for number in range(4):
            fill(workspace / "file", str(number).encode())
            states.append(session.checkpoint(f"{number}"))
        fill(workspace / "unsaved", b"never checkpointed")
        walked = [describe(workspace)]
        for target in (states[0], states[2], states[1]):
            session.restore(target)
            walked.append(describe(workspace))
        for expected in walked[-2::-1]:
            session.undo()
            assert differences(describe(workspace), expected) == []
        with pytest.raises(NothingToUndo):
            session.undo()
        for expected in walked[1:]:
            session.redo()
            assert differences(describe(workspace), expected) == []
        with pytest.raises(NothingToUndo):
            session.redo()
        session.undo()
        session.undo()
        assert describe(workspace) == walked[1]
    assert debris(workspace) == []


@pytest.mark.requirement("RB-2")
def test_a_session_undoes_and_redoes_its_restore_to_a_checkpoint_of_another_session(
    workspace: Path,
) -> None:
    with SessionCheckpointer(workspace, "two") as two:
        two.checkpoint("B", name="B")
        fill(workspace / "file", b"1")
        two.checkpoint("C", name="C")
        with SessionCheckpointer(workspace, "one") as one:
            own = one.checkpoint("A")
            fill(workspace / "file", b"not saved")
            walked = [describe(workspace)]
            for target in (own, "two:B", "two:C"):
                one.restore(target)
                walked.append(describe(workspace))
            for expected in walked[-2::-1]:
                one.undo()
                assert describe(workspace) == expected
            with pytest.raises(NothingToUndo):
                one.undo()
            for expected in walked[1:]:
                one.redo()
                assert describe(workspace) == expected
            two.undo()
            assert describe(workspace) == walked[-2]
            one.undo()
            assert describe(workspace) == walked[-3]


@pytest.mark.requirement("RB-2")
def test_a_session_undoes_no_restore_that_another_session_made(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "one") as one, SessionCheckpointer(workspace, "two") as two:
        two.checkpoint("B", name="B")
        fill(workspace / "file", b"1")
        one.restore("two:B")
        fill(workspace / "file", b"2")
        two.restore("B")
        with pytest.raises(Refused, match="another restore"):
            one.undo()
        assert (workspace / "file").read_bytes() == b"0"
        two.undo()
        one.undo()
        assert (workspace / "file").read_bytes() == b"1"


@pytest.mark.requirement("RB-2")
def test_edits_between_a_restore_and_its_undo_are_saved_too(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        session.restore(first)
        fill(workspace / "file", b"edited after the restore")
        edited = describe(workspace)
        session.undo()
        assert (workspace / "file").read_bytes() == b"1"
        session.redo()
        assert describe(workspace) == edited


@pytest.mark.requirement("RB-2")
def test_a_new_restore_ends_what_could_be_redone(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        second = session.checkpoint("second")
        session.restore(first)
        session.undo()
        session.restore(second)
        with pytest.raises(NothingToUndo) as refused:
            session.redo()
        assert refused.value.hint, "the way out"


@pytest.mark.requirement("RB-2")
def test_history_is_never_rewritten(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        session.checkpoint("second")
        seen: list[str] = []
        for act in (lambda: session.restore(first), session.undo, session.redo, session.undo):
            before = [s.id for s in session.history(None, records=True)]
            act()
            after = [s.id for s in session.history(None, records=True)]
            assert after[len(after) - len(before) :] == before
            assert len(after) == len(before) + 2
            seen.append(after[0])
        outcome = session.restore_checkpoint(first)
        record = get_snapshot(session, outcome.record)
        assert record.parent == first
        assert record.manifest == get_snapshot(session, first).manifest
        assert line_end(session) == outcome.record
        safety = get_snapshot(session, outcome.safety)
        assert safety.artifact("file").read_bytes() == b"1"


@pytest.mark.requirement("RB-1")
def test_a_plan_says_what_a_restore_then_does(workspace: Path) -> None:
    fill(workspace / "deleted", b"x")
    fill(workspace / "modes", b"x")
    fill(workspace / "old-dir/inner", b"x")
    (workspace / "link").symlink_to("a")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        (workspace / "deleted").unlink()
        (workspace / "modes").chmod(0o600)
        (workspace / "old-dir/inner").unlink()
        (workspace / "old-dir").rmdir()
        (workspace / "link").unlink()
        (workspace / "link").symlink_to("b")
        fill(workspace / "new-dir/inner", b"x")
        before = describe(workspace, mtimes=True)
        head, count = session.head, session.stats
        plan = session.plan_restore(first)
        assert describe(workspace, mtimes=True) == before
        assert (session.head, session.stats) == (head, count)
        assert {(step.type, step.path) for step in plan.steps} == {
            (StepType.CREATE, b"deleted"),
            (StepType.RESTORE, b"file"),
            (StepType.CHMOD, b"modes"),
            (StepType.MKDIR, b"old-dir"),
            (StepType.CREATE, b"old-dir/inner"),
            (StepType.RELINK, b"link"),
            (StepType.DELETE, b"new-dir/inner"),
            (StepType.RMDIR, b"new-dir"),
        }
        assert plan.bytes_to_write == 3
        assert len(plan.affected_files) == 6
        assert any("changed since" in warning for warning in plan.warnings)
        outcome = session.restore_checkpoint(first)
    assert set(outcome.steps) == set(plan.steps)


@pytest.mark.requirement("RB-1")
def test_a_plan_from_a_saved_state_has_nothing_to_warn_about(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        session.checkpoint("second")
        assert session.plan_restore(first).warnings == ()
        assert session.plan_restore(line_end(session)).steps == ()


@pytest.mark.requirement("RB-7")
def test_only_selected_paths_come_back(workspace: Path) -> None:
    fill(workspace / "dir/a", b"0")
    fill(workspace / "dir/sub/b", b"0")
    fill(workspace / "other", b"0")
    original = describe(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "dir/a", b"1")
        (workspace / "dir/sub/b").unlink()
        (workspace / "dir/sub").rmdir()
        fill(workspace / "dir/new", b"1")
        fill(workspace / "other", b"1")
        fill(workspace / "file", b"1")
        wrecked = describe(workspace)
        second = session.checkpoint("second")
        outcome = session.restore_checkpoint(first, ["dir/", "other"])
        expected = {p: n for p, n in original.items() if p != b"file"}
        expected[b"file"] = wrecked[b"file"]
        assert differences(describe(workspace), expected) == []
        assert outcome.restored_to == first
        assert session.head_id == second
        assert get_snapshot(session, "HEAD").manifest != get_snapshot(session, first).manifest
        session.undo()
        assert differences(describe(workspace), wrecked) == []
        session.restore_checkpoint(first, ["dir/sub/b"])
        assert (workspace / "dir/sub/b").read_bytes() == b"0"
        assert (workspace / "dir/new").read_bytes() == b"1"


@pytest.mark.requirement("RB-7")
def test_a_selected_name_of_a_hardlinked_file_comes_back_with_its_own_content(
    workspace: Path,
) -> None:
    fill(workspace / "a", b"shared")
    os.link(workspace / "a", workspace / "b")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("linked")
        for name in ("a", "b"):
            (workspace / name).unlink()
            fill(workspace / name, b"changed " + name.encode())
        session.restore_checkpoint(first, ["b"])
        assert (workspace / "b").read_bytes() == b"shared"
        assert (workspace / "a").read_bytes() == b"changed a"
        (workspace / "a").unlink()
        (workspace / "b").unlink()
        session.restore_checkpoint(first, ["b"])
        assert (workspace / "b").read_bytes() == b"shared"
        assert not (workspace / "a").exists()


@pytest.mark.requirement("RB-7")
@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "a/../../b", "", ".", "..", ".git/config", "a//b", "a\0b"]
)
def test_a_path_outside_the_workspace_is_refused(workspace: Path, path: str) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        with pytest.raises(UsageError):
            session.restore_checkpoint(first, [path])
    assert (workspace / "file").read_bytes() == b"1"


@pytest.mark.requirement("RB-7")
def test_an_unknown_path_is_reported_as_unknown(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        with pytest.raises(NotFound, match="missing"):
            session.restore_checkpoint(first, ["missing"])
        with pytest.raises(NotFound, match="missing"):
            session.restore_checkpoint(first, ["file", "missing"])
    assert (workspace / "file").read_bytes() == b"1"


@pytest.mark.requirement("RB-5")
def test_a_finished_restore_says_that_it_was_verified(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"1")
        assert session.restore_checkpoint(first).verified


@pytest.mark.requirement("RB-2")
def test_a_restore_with_nothing_to_do_is_what_the_next_undo_undoes(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        fill(workspace / "file", b"1")
        first = session.checkpoint("first")
        fill(workspace / "file", b"2")
        session.restore(first)
        for reference, paths in ((first, None), ("HEAD", None), (first, ["file"])):
            outcome = session.restore_checkpoint(reference, paths)
            assert (outcome.recorded, outcome.steps, outcome.verified) == (True, (), True)
            assert outcome.record == line_end(session)
            assert session.head_id == first
        assert session.restore(first) == 0
        assert [s.id for s in session.history(None)] == [first]
        for _ in range(4):
            assert session.undo().steps == ()
        session.undo()
        assert (workspace / "file").read_bytes() == b"2"


@pytest.mark.requirement("RB-2", "RB-7")
def test_what_a_trigger_finds_as_it_should_be_leaves_no_record(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        fill(workspace / "file", b"1")
        first = session.checkpoint("first")
        engine = engine_of(session)
        request = engine.restore_request(SessionId("s"), first, only_changes=True)
        assert not engine.restore(request).recorded
        fill(workspace / "file", b"2")
        assert engine.restore(request).recorded


@pytest.mark.requirement("RB-2")
def test_a_restore_that_only_moves_head_is_recorded(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        second = session.checkpoint("the same files")
        outcome = session.restore_checkpoint(first)
        assert (outcome.recorded, outcome.steps) == (True, ())
        assert session.head_id == first
        session.undo()
        assert session.head_id == second
