"""Worktrees of a repository are listed, saved, and made again when they are gone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreConflict, RestoreFailed
from tests.behind_the_api import engine_of
from tests.components.git.repositories import commit, git, with_history, write
from tests.components.worktrees.scenes import with_worktrees, worktree_files, worktrees_picture
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure
from tests.support.session_states import get_snapshot
from tests.support.strides import strides

WITH = {"worktrees": "exact"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return with_worktrees(tmp_path / "project")


@pytest.mark.requirement("GT-5")
@pytest.mark.parametrize("accident", ["removed", "rm -rf", "removed and collected"])
def test_a_worktree_that_is_gone_comes_back_with_its_files_and_undo_takes_it_back(
    place: Path, accident: str
) -> None:
    configure(place, worktree_files="on")
    side = place.parent / "side-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("before the accident")
        assert saved.degraded == ()
        before = worktrees_picture(place)
        if accident == "rm -rf":
            shutil.rmtree(side)
        else:
            git(place, "worktree", "remove", "--force", str(side))
            git(place, "branch", "-q", "-D", "side")
        if accident == "removed and collected":
            git(place, "reflog", "expire", "--expire=now", "--all")
            git(place, "gc", "-q", "--prune=now")
        after = worktrees_picture(place)
        plan = session.plan_restore(saved.checkpoint.id, components=WITH)
        assert not side.exists()
        assert any(str(side) in line for step in plan.components for line in step.actions)
        session.restore_checkpoint(saved.checkpoint.id, components=WITH)
        assert worktrees_picture(place) == before
        assert git(place, "fsck", "--connectivity-only") == ""
        session.undo()
        assert not side.exists()
        assert worktrees_picture(place) == after
        session.redo()
        assert worktrees_picture(place) == before


@pytest.mark.requirement("GT-5")
def test_without_their_files_place_and_head_come_back(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    configure(place, worktree_files="never")
    there = tmp_path / "there"
    git(place, "worktree", "add", "-q", str(there), "side")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("a worktree")
        git(place, "worktree", "remove", str(there))
        session.restore_checkpoint(saved, components={"worktrees": "files"})
        assert not there.exists(), "not when it is not wanted"
        warnings = session.plan_restore(saved).warnings
        assert f"worktrees: uncommitted files were not saved for {there}" in warnings
        session.restore_checkpoint(saved, components=WITH)
    assert git(there, "branch", "--show-current").strip() == "side"
    assert git(there, "status", "--porcelain") == ""


@pytest.mark.requirement("GT-5")
def test_by_default_one_that_is_gone_comes_back_with_its_files_and_one_that_is_there_stays(
    place: Path,
) -> None:
    side, loose = place.parent / "side-work", place.parent / "loose-work"
    write(side / "only-here.txt", "in no commit\n")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before the agent")
        before = worktree_files(side)
        git(place, "worktree", "remove", "--force", str(side))
        write(loose / "code.txt", "somebody works here\n")
        working = worktree_files(loose)
        (step,) = session.plan_restore(saved).components
        assert [line for line in step.actions if str(side) in line]
        assert not [line for line in step.actions if str(loose) in line]
        session.restore_checkpoint(saved)
        assert worktree_files(side) == before
        assert worktree_files(loose) == working
        session.undo()
        assert not side.exists()
        assert worktree_files(loose) == working


@pytest.mark.requirement("GT-5")
def test_a_worktree_that_cannot_come_back_is_reported_and_holds_nothing_up(place: Path) -> None:
    side = place.parent / "side-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before the agent")
        git(place, "worktree", "remove", "--force", str(side))
        write(side / "mine.txt", "something else is here\n")
        write(place / "code.txt", "wrecked\n")
        done = session.restore_checkpoint(saved)
        assert any("is occupied by something else" in text for text in done.warnings)
    assert (place / "code.txt").read_text() != "wrecked\n"
    assert (side / "mine.txt").exists()


@pytest.mark.requirement("GT-5")
def test_automatic_checkpoints_know_of_worktrees_without_their_files(place: Path) -> None:
    from holdfast.domain.checkpoints import Kind
    from holdfast.domain.ids import SessionId
    from holdfast.domain.intent import make_intent
    from holdfast.engine.components.manifests import state_of

    with SessionCheckpointer(place, "s") as session:
        engine = engine_of(session)
        for kind, with_files in ((Kind.MANUAL, True), (Kind.TOOL, False), (Kind.RISKY, True)):
            write(place / "code.txt", f"{kind}\n")
            made = engine.save(SessionId("s"), make_intent("why"), kind=kind).checkpoint
            state = state_of(engine.vault.objects, made, "worktrees")
            assert state is not None
            assert {row["files"] for row in state.facts["worktrees"]} == {with_files}, kind


@pytest.mark.requirement("GT-5")
def test_files_of_a_worktree_come_back_and_unsaved_files_are_not_touched(place: Path) -> None:
    configure(place, worktree_files="on")
    loose = place.parent / "loose-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        before = worktrees_picture(place)
        write(loose / "code.txt", "an agent was here\n")
        write(loose / "junk.txt", "junk\n")
        git(loose, "add", "junk.txt")
        after = worktrees_picture(place)
        session.restore_checkpoint(saved, components=WITH)
        assert worktrees_picture(place) == before
        session.undo()
        assert worktrees_picture(place) == after
    configure(place, worktree_files="off")
    with SessionCheckpointer(place, "s") as session:
        with pytest.raises((RestoreFailed, RestoreConflict), match="or was not saved"):
            session.restore_checkpoint(saved, components=WITH)
        assert worktrees_picture(place) == after


@pytest.mark.requirement("GT-5")
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_worktree_that_was_moved_comes_back_at_its_new_place(place: Path, by_hand: bool) -> None:
    configure(place, worktree_files="on")
    side, moved = place.parent / "side-work", place.parent / "moved-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        before = worktree_files(side)
        if by_hand:
            side.rename(moved)
            git(moved, "worktree", "repair")
        else:
            git(place, "worktree", "move", str(side), str(moved))
        write(moved / "code.txt", "an agent was here\n")
        write(moved / "junk.txt", "junk\n")
        after = worktrees_picture(place)
        plan = session.plan_restore(saved, components=WITH)
        lines = [line for step in plan.components for line in step.actions]
        assert lines == [f"restore the files of the worktree {moved}"]
        session.restore_checkpoint(saved, components=WITH)
        assert worktree_files(moved) == before
        assert not side.exists()
        session.undo()
        assert worktrees_picture(place) == after
        assert not side.exists()


@pytest.mark.requirement("GT-5")
@pytest.mark.parametrize("other", ["made anew", "without a log"])
def test_another_worktree_is_not_taken_for_one_that_was_moved(place: Path, other: str) -> None:
    side = place.parent / "side-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        if other == "made anew":
            git(place, "worktree", "remove", "--force", str(side))
            git(place, "commit", "-q", "--allow-empty", "-m", "so that logs differ")
            elsewhere = place.parent / "elsewhere/side-work"
            git(place, "worktree", "add", "-q", "--detach", str(elsewhere), "main")
            git(elsewhere, "checkout", "-q", "side")
        else:
            git(place, "worktree", "move", str(side), str(place.parent / "moved"))
            (place / ".git/worktrees/side-work/logs/HEAD").unlink()
        with pytest.raises(RestoreConflict, match="is checked out elsewhere"):
            session.restore_checkpoint(saved, components=WITH)
        assert not side.exists()


@pytest.mark.requirement("GT-5")
def test_a_worktree_that_is_elsewhere_is_left_alone_and_it_is_said(place: Path) -> None:
    configure(place, worktree_files="on")
    side = place.parent / "side-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        git(side, "stash", "-q", "-u")
        commit(side, "code.txt", "a commit of an agent\n")
        now = worktree_files(side)
        plan = session.plan_restore(saved, components=WITH)
        assert any("is at another commit" in w for w in plan.warnings)
        session.restore_checkpoint(saved, components=WITH)
        assert worktree_files(side) == now


@pytest.mark.requirement("GT-5")
def test_a_branch_that_moved_is_not_moved_back(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    there = tmp_path / "there"
    git(place, "worktree", "add", "-q", str(there), "side")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        stood = git(place, "rev-parse", "side").strip()
        git(place, "worktree", "remove", str(there))
        git(place, "branch", "-q", "-f", "side", "main")
        moved = git(place, "rev-parse", "side")
        session.restore_checkpoint(saved, components=WITH)
        assert git(place, "rev-parse", "side") == moved
        assert git(there, "rev-parse", "HEAD").strip() == stood
        assert git(there, "branch", "--show-current") == ""


@pytest.mark.requirement("GT-5")
@pytest.mark.parametrize("work", ["fresh.txt", "ignored.tmp", "nested"])
def test_an_undo_leaves_a_worktree_that_another_process_has_worked_in(
    tmp_path: Path, work: str
) -> None:
    place = with_history(tmp_path / "project")
    configure(place, worktree_files="never")
    write(place / ".git/info/exclude", "*.tmp\n")
    there = tmp_path / "there"
    git(place, "worktree", "add", "-q", str(there), "side")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        git(place, "worktree", "remove", str(there))
        session.restore_checkpoint(saved, components=WITH)
        if work == "nested":
            with_history(there / "nested")
        else:
            write(there / work, "work\n")
        before = worktree_files(there)
        session.undo()
        assert worktree_files(there) == before


@pytest.mark.requirement("GT-5", "RL-7")
def test_a_place_that_is_taken_or_foreign_is_refused(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    there = tmp_path / "there"
    git(place, "worktree", "add", "-q", str(there), "side")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        git(place, "worktree", "remove", str(there))
        write(there / "mine.txt", "mine\n")
        with pytest.raises((RestoreFailed, RestoreConflict), match="is occupied by something else"):
            session.restore_checkpoint(saved, components=WITH)
        assert worktree_files(there).keys() == {b"mine.txt"}
        shutil.rmtree(there)
        # As if it had been captured elsewhere: what it keeps alive is not of this repository.
        for ref in git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split():
            git(place, "update-ref", "-d", ref)
        with pytest.raises((RestoreFailed, RestoreConflict), match="saved in another repository"):
            session.restore_checkpoint(saved, components=WITH)
        assert not there.exists()


@pytest.mark.requirement("GT-5", "RL-7")
def test_no_file_is_written_through_a_link(place: Path) -> None:
    configure(place, worktree_files="on")
    side, outside = place.parent / "side-work", place.parent / "outside"
    outside.mkdir()
    write(outside / "new.txt", "not of the worktree\n")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        shutil.rmtree(side / "deep")
        (side / "deep").symlink_to(outside)
        session.restore_checkpoint(saved, components=WITH)
    assert (outside / "new.txt").read_text() == "not of the worktree\n"
    assert (side / "deep/new.txt").read_text() == "nobody knows\n"
    assert not (side / "deep").is_symlink()


@pytest.mark.requirement("GT-5", "CL-1")
def test_the_command_line_lists_worktrees_and_brings_them_back(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    there = tmp_path / "there"
    git(place, "worktree", "add", "-q", str(there), "side")
    cli = CommandLine(place)
    saved = cli.save("with a worktree")
    assert f"{there}: on side at" in cli("show", saved).out
    git(place, "worktree", "remove", str(there))
    done = cli.json("restore", saved, "--with", "worktrees", "--yes")
    assert [c["name"] for c in done["components"]] == ["worktrees"]
    assert there.is_dir()


@pytest.mark.requirement("GT-5", "RB-1")
def test_a_preview_names_every_worktree_that_is_gone_or_changed(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    gone, changed, same = (tmp_path / name for name in ("gone", "changed", "same"))
    for there in (gone, changed, same):
        git(place, "worktree", "add", "-q", "--detach", str(there))
    cli = CommandLine(place)
    saved = cli.save("with worktrees")
    shutil.rmtree(gone)
    write(changed / "code.txt", "somebody works here\n")
    answer = cli("restore", saved, "--dry-run")
    assert "would change no files, only this:\n" in answer.out
    assert "would change nothing" not in answer.out
    assert f"restore the worktree {gone}" in answer.out
    assert f"the worktree {changed} has changed since and is not restored" in answer.out
    assert str(same) not in answer.out
    exact = cli("restore", saved, "--dry-run", "--with", "worktrees")
    assert f"restore the files of the worktree {changed}" in exact.out
    assert "stays as it is" not in exact.out


@pytest.mark.requirement("GT-5")
def test_what_is_kept_alive_goes_with_the_checkpoint(place: Path) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("first")
        made = session.checkpoint("second")
        kept = git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split()
        assert any("-worktrees/" in ref for ref in kept)
        first = get_snapshot(session, "initial").id
        session.purge(first, made, force=True)
    left = git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split()
    assert [ref for ref in left if "-worktrees/" in ref] == []


@pytest.mark.requirement("GT-5", "RB-2")
@pytest.mark.parametrize("components", [None, WITH])
def test_work_that_was_staged_in_a_missing_worktree_is_saved_before_its_index_is_replaced(
    place: Path, components: dict[str, str] | None
) -> None:
    side = place.parent / "side-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before the accident")
        before = worktrees_picture(place)
        write(side / "precious.txt", "only staged\n")
        git(side, "add", "precious.txt")
        index = place / ".git/worktrees/side-work"
        staged = git(index, "ls-files", "--stage")
        shutil.rmtree(side)
        session.restore_checkpoint(saved, components=components)
        assert git(side, "ls-files", "--stage") == before[f"{side} staged"]
        git(place, "gc", "-q", "--prune=now")
        session.undo()
        assert not side.exists()
        assert git(index, "ls-files", "--stage") == staged
        assert git(index, "show", ":precious.txt") == "only staged\n"
        session.redo()
        assert git(side, "ls-files", "--stage") == before[f"{side} staged"]


@pytest.mark.requirement("GT-5", "RB-2")
def test_undo_saves_what_is_staged_in_a_recreated_worktree_even_if_files_never_are(
    tmp_path: Path,
) -> None:
    place = with_history(tmp_path / "project")
    there = tmp_path / "there"
    git(place, "worktree", "add", "-q", str(there), "side")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        git(place, "worktree", "remove", str(there))
        session.restore_checkpoint(saved, components=WITH)
        configure(place, worktree_files="never")
        write(there / "code.txt", "staged\n")
        git(there, "add", "code.txt")
        staged = git(there, "ls-files", "--stage")
    with SessionCheckpointer(place, "s") as session:
        session.undo()
        assert not there.exists()
        git(place, "gc", "-q", "--prune=now")
        session.redo()
        assert git(there, "ls-files", "--stage") == staged
        assert (there / "code.txt").read_text() == "staged\n"


DYING = """
import os, sys
from pathlib import Path
from holdfast import SessionCheckpointer
from holdfast.components.git.commands import Git
from holdfast.components.worktrees.restore import WorktreesRestore

left, armed, run = int(sys.argv[2]), False, WorktreesRestore.run

def counted(real):
    def call(*given, **named):
        global left
        if armed and left == 0:
            if given[1:3] == ("worktree", "remove"):  # git dies in the middle of it
                Path(os.fsdecode(given[-1]), ".git").unlink(missing_ok=True)
            os._exit(9)
        left -= armed
        return real(*given, **named)
    return call

def armed_run(self):
    global armed
    armed = True
    run(self)

WorktreesRestore.run = armed_run
Git.run = counted(Git.run)
for name in ("rename", "replace", "unlink", "rmdir"):
    setattr(os, name, counted(getattr(os, name)))
session = SessionCheckpointer(Path(sys.argv[1]), "s")
session.undo() if len(sys.argv) == 3 else session.restore_checkpoint(sys.argv[3])
"""


@pytest.mark.requirement("GT-5", "RB-3")
@pytest.mark.parametrize("accident", ["removed", "rm -rf"])
def test_a_crash_in_the_undo_of_a_recreated_worktree_leaves_it_whole_or_gone(
    place: Path, accident: str
) -> None:
    configure(place, worktree_files="never")
    side = place.parent / "side-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before the accident")
        if accident == "rm -rf":
            shutil.rmtree(side)
        else:
            git(place, "worktree", "remove", "--force", str(side))
            git(place, "branch", "-q", "-D", "side")
        after = worktrees_picture(place)
        session.restore_checkpoint(saved, components=WITH)
        before = worktrees_picture(place)
    step, status = 0, 9
    while status == 9:
        child = [sys.executable, "-c", DYING, str(place), str(step)]
        status = subprocess.run(child, check=False).returncode
        with SessionCheckpointer(place, "s") as session:
            assert worktrees_picture(place) == after, step
            assert side.exists() is False
            assert not list(place.parent.glob(".holdfast*")), step
            session.redo()
            assert worktrees_picture(place) == before, step
        step += 2
    assert status == 0
    assert step > 4


@strides(4)
@pytest.mark.requirement("GT-5", "RB-3")
@pytest.mark.parametrize("accident", ["removed", "rm -rf"])
def test_a_crash_while_a_missing_worktree_is_recreated_leaves_nothing_half_filled(
    place: Path, accident: str, stride: int
) -> None:
    side = place.parent / "side-work"
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before the accident")
    before = worktrees_picture(place)
    if accident == "rm -rf":
        shutil.rmtree(side)
    else:
        git(place, "worktree", "remove", "--force", str(side))
        git(place, "branch", "-q", "-D", "side")
    after = worktrees_picture(place)
    step, status = stride - 1, 9
    while status == 9:
        child = [sys.executable, "-c", DYING, str(place), str(step), saved]
        status = subprocess.run(child, check=False).returncode
        with SessionCheckpointer(place, "s") as session:
            assert worktrees_picture(place) == before, step
            assert not list(place.parent.glob(".holdfast*")), step
            session.undo()
            assert worktrees_picture(place) == after, step
        step += stride
    assert status == 0
    assert step > 8
