"""How what a checkpoint needs is kept alive: a reference written as git would write it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.components.git.keep_alive import new_reference
from holdfast.components.git.repository import find_repository
from tests.components.git.repositories import commit, git, with_history, write

REF = b"refs/holdfast/somebody/0123"


def holdfast_refs(place: Path) -> list[str]:
    return git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split()


@pytest.mark.requirement("GT-1", "PF-1")
def test_a_change_in_git_starts_a_single_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, log, real = with_history(tmp_path / "project"), tmp_path / "log", shutil.which("git")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("before")
        write(place / "code.txt", "staged\n")
        git(place, "add", "code.txt")
        write(tmp_path / "bin/git", f'#!/bin/sh\necho "$@" >>"{log}"\nexec "{real}" "$@"\n')
        (tmp_path / "bin/git").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
        outcome = session.save_checkpoint("after")
    assert outcome.degraded == ()
    (only,) = log.read_text().splitlines()
    assert " diff-index " in only
    assert any(ref.endswith(f"/{outcome.checkpoint.id}") for ref in holdfast_refs(place))
    assert git(place, "fsck", "--strict") == ""
    assert not (place / ".git/logs/refs/holdfast").exists()


@pytest.mark.requirement("GT-1")
def test_a_reference_has_the_modes_of_a_shared_repository(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    (place / ".git/refs").chmod(0o2770)
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("why")
    (mine,) = holdfast_refs(place)
    file = place / ".git" / mine
    assert file.stat().st_mode & 0o777 == 0o660
    assert file.parent.stat().st_mode & 0o7777 == 0o2770
    assert file.parent.parent.stat().st_mode & 0o7777 == 0o2770


@pytest.mark.requirement("GT-1")
def test_a_reference_is_in_force_only_when_it_is_placed(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    repository = find_repository(place)
    assert repository is not None
    head = git(place, "rev-parse", "HEAD").strip()
    with new_reference(repository, REF, head):
        assert holdfast_refs(place) == []
    assert holdfast_refs(place) == []
    assert list((place / ".git/refs/holdfast").rglob("*.lock")) == []
    with new_reference(repository, REF, head) as mine:
        with pytest.raises(FileExistsError), new_reference(repository, REF, head):
            pass
        mine.place()
    assert git(place, "rev-parse", REF.decode()).strip() == head
    with pytest.raises(FileExistsError), new_reference(repository, REF, head):
        pass
    assert git(place, "rev-parse", REF.decode()).strip() == head
    assert list((place / ".git/refs/holdfast").rglob("*.lock")) == []


@pytest.mark.requirement("GT-1", "GT-6")
def test_what_is_in_the_way_of_a_reference_is_reported_by_git(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    head = git(place, "rev-parse", "HEAD").strip()
    write(place / ".git/refs/holdfast", head + "\n")
    with SessionCheckpointer(place, "s") as session:
        (problem,) = session.save_checkpoint("why").degraded
        assert "refs/holdfast" in problem
        (place / ".git/refs/holdfast").unlink()
        commit(place, "code.txt", "three\n")
        assert session.save_checkpoint("again").degraded == ()
    assert len(holdfast_refs(place)) == 1


@pytest.mark.requirement("GT-1", "DB-3")
def test_a_state_that_the_store_has_no_room_for_keeps_nothing_alive(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        session.opened.settings.set("component_max_size", 10)
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("why")
        assert "component_max_size" in outcome.degraded[0]
        assert holdfast_refs(place) == []
