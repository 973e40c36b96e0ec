"""A restored git state is on disk before the restore counts: files and their directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.components.git.repositories import (
    commit,
    deletes_the_branch,
    git,
    mid_rebase,
    switches,
    with_history,
    write,
)
from tests.support.synced_files import SyncedFiles

pytestmark = pytest.mark.requirement("GT-2", "RB-3")

EXACT = {"git": "exact"}


def watched(place: Path, monkeypatch: pytest.MonkeyPatch) -> SyncedFiles:
    """Everything of a repository, except objects, which git syncs, and reflogs."""
    data = place / ".git"
    trees = [data / name for name in ("refs", "rebase-merge")]
    places = [data / name for name in (".", "HEAD", "index", "packed-refs", "ORIG_HEAD")]
    return SyncedFiles(monkeypatch, trees, places)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("accident", [switches, deletes_the_branch])
def test_head_branches_and_an_operation_are_synced_and_so_is_their_removal(
    tmp_path: Path,
    accident: Callable[[Path], None],
    packed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "project"
    mid_rebase(place)
    if packed:
        git(place, "pack-refs", "--all")
    synced = watched(place, monkeypatch)
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("in the middle of a rebase")
        git(place, "rebase", "--abort")
        accident(place)
        synced.begin()
        session.restore_checkpoint(saved, components=EXACT)
        assert (place / ".git/rebase-merge").is_dir()
        assert synced.unsynced() == []
        synced.begin()
        session.undo()
        assert not (place / ".git/rebase-merge").exists()
        assert synced.unsynced() == []


@pytest.mark.parametrize("packed", [True, False])
def test_other_branches_tags_and_the_stash_are_synced(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    git(place, "branch", "far/away/topic", "main")
    git(place, "tag", "far/away/tag", "main")
    write(place / "code.txt", "stashed\n")
    git(place, "stash", "-q")
    synced = watched(place, monkeypatch)
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("with references")
        git(place, "branch", "-D", "far/away/topic")
        git(place, "tag", "-d", "far/away/tag")
        git(place, "stash", "drop", "-q")
        git(place, "branch", "new", "main")
        if packed:
            git(place, "pack-refs", "--all")
        synced.begin()
        session.restore_checkpoint(saved, components={"git": "refs:all"})
        assert git(place, "stash", "list") != ""
        assert synced.unsynced() == []
        synced.begin()
        session.undo()
        assert "topic" not in git(place, "branch", "--list")
        assert synced.unsynced() == []


def test_a_commit_that_only_a_checkpoint_needs_is_kept_by_a_synced_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    synced = watched(place, monkeypatch)
    synced.begin()
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("first")
        commit(place, "code.txt", "an agent was here\n")
        git(place, "checkout", "-q", "--orphan", "unborn")
        synced.begin()
        session.checkpoint("without a commit of HEAD")
        assert synced.unsynced() == []
