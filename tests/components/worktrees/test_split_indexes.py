"""The index of a worktree comes back even if git keeps it in two files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.components.git.index_file import IndexEntries, is_same_index, read_index
from tests.components.git.repositories import git, with_history, write
from tests.components.worktrees.scenes import with_worktrees, worktrees_picture
from tests.support.composition import configure

pytestmark = pytest.mark.requirement("GT-5", "GT-6")

WITH = {"worktrees": "exact"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = with_worktrees(tmp_path / "project")
    configure(place, worktree_files="on")
    return place


@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize("accident", ["removed", "rm -rf"])
def test_a_recreated_worktree_has_its_index_in_two_files(
    place: Path, accident: str, always: bool
) -> None:
    side = place.parent / "side-work"
    if always:
        git(place, "config", "core.splitIndex", "true")
    git(side, "update-index", "--split-index")
    write(side / "staged.txt", "only ever staged\n")
    git(side, "add", "staged.txt")
    assert list((place / ".git/worktrees/side-work").glob("sharedindex.*"))
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("before the accident")
        assert saved.degraded == ()
        before = worktrees_picture(place)
        if accident == "rm -rf":
            shutil.rmtree(side)
        else:
            git(place, "worktree", "remove", "--force", str(side))
        git(place, "gc", "-q", "--prune=now")
        after = worktrees_picture(place)
        session.restore_checkpoint(saved.checkpoint.id, components=WITH)
        assert worktrees_picture(place) == before
        session.undo()
        assert worktrees_picture(place) == after
        session.redo()
        assert worktrees_picture(place) == before


def test_an_index_in_two_files_is_replaced_only_if_it_differs_and_undo_restores_it(
    place: Path,
) -> None:
    loose = place.parent / "loose-work"
    git(loose, "update-index", "--split-index")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        before = worktrees_picture(place)
        plan = session.plan_restore(saved, components=WITH)
        assert [line for step in plan.components for line in step.actions] == []
        write(loose / "staged.txt", "only ever staged\n")
        git(loose, "add", "staged.txt")
        git(loose, "update-index", "--no-split-index")
        git(loose, "update-index", "--split-index")  # the same names in a first file, others in it
        after = worktrees_picture(place)
        session.restore_checkpoint(saved, components=WITH)
        assert worktrees_picture(place) == before
        session.undo()
        assert worktrees_picture(place) == after


def test_a_missing_shared_file_is_reported_with_the_checkpoint(place: Path) -> None:
    side = place.parent / "side-work"
    git(side, "update-index", "--split-index")
    for shared in (place / ".git/worktrees/side-work").glob("sharedindex.*"):
        shared.unlink()
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("damaged")
    assert any(str(side) in text for text in saved.degraded)


def test_indexes_in_two_files_with_different_first_files_are_different(tmp_path: Path) -> None:
    place, found = with_history(tmp_path / "project"), []
    for text in ("one\n", "another\n"):
        write(place / "staged.txt", text)
        for name in git(place, "ls-files", "-co", "-z").split("\0")[:-1]:
            os.utime(place / name, (10**9, 10**9))  # long settled, so git notes no more
        git(place, "add", ".")
        git(place, "update-index", "--no-split-index")
        git(place, "update-index", "--split-index")
        found.append((place / ".git/index").read_bytes())
    one, two = found
    assert is_same_index(one, one)
    assert not is_same_index(one, two)
    assert list(read_index(one)) == []
    assert not IndexEntries(one).is_whole
