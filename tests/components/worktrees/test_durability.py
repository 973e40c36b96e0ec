"""Restored worktrees are on disk, with everything that git wrote, before the restore counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.components.git.repositories import git, write
from tests.components.worktrees.scenes import with_worktrees
from tests.support.composition import configure
from tests.support.synced_files import SyncedFiles

pytestmark = pytest.mark.requirement("GT-5", "RB-3")

WITH = {"worktrees": "exact"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return with_worktrees(tmp_path / "project")


@pytest.mark.parametrize("accident", ["removed", "rm -rf", "rm -rf of what is above"])
def test_a_recreated_worktree_is_synced_and_so_is_its_removal(
    place: Path, accident: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(place, worktree_files="on")
    above, data = place.parent / "above", place / ".git"
    above.mkdir()
    side = above / "side-work"
    git(place, "worktree", "move", str(place.parent / "side-work"), str(side))
    synced = SyncedFiles(
        monkeypatch, [above, data / "worktrees", data / "refs"], [place.parent, data]
    )
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before the accident")
        if accident == "removed":
            git(place, "worktree", "remove", "--force", str(side))
            git(place, "branch", "-q", "-D", "side")
        else:
            shutil.rmtree(side if accident == "rm -rf" else above)
        synced.begin()
        session.restore_checkpoint(saved, components=WITH)
        assert (side / "deep/new.txt").exists()
        assert synced.unsynced() == []
        synced.begin()
        session.undo()
        assert not side.exists()
        assert synced.unsynced() == []


def test_restored_files_of_an_existing_worktree_are_synced(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(place, worktree_files="on")
    loose = place.parent / "loose-work"
    write(loose / "far/away/new.txt", "nobody knows\n")
    synced = SyncedFiles(monkeypatch, [loose, place / ".git/worktrees"], [])
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        shutil.rmtree(loose / "far")
        write(loose / "docs/guide.txt", "changed, and git has the old one\n")
        write(loose / "docs/junk.txt", "junk\n")
        git(loose, "add", "docs/junk.txt")
        synced.begin()
        session.restore_checkpoint(saved, components=WITH)
        assert (loose / "far/away/new.txt").exists()
        assert not (loose / "docs/junk.txt").exists()
        assert synced.unsynced() == []
