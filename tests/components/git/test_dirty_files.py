"""How many tracked files were dirty at a checkpoint: as git counts them, or there is no answer."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.api.views.git import git_at_checkpoint_view
from holdfast.components.git import dirty_files as dirty_files
from holdfast.components.git import repository
from holdfast.domain.errors import NothingToUndo
from holdfast.domain.git.drift import git_place
from holdfast.domain.ids import Digest, SessionId
from holdfast.domain.outcomes import RestoreOutcome
from holdfast.domain.trees.tree import Tree
from holdfast.engine.components.git_drift import present_git
from holdfast.engine.components.manifests import read_states, state_of
from holdfast.engine.vault import Vault
from tests.behind_the_api import engine_of
from tests.components.git.repositories import SCENES, commit, git, with_history, write
from tests.support.ticks import wait_a_tick


def recorded_dirty_files(session: SessionCheckpointer, reference: str) -> list[str] | None:
    """The dirty files that a checkpoint tells of; None when it does not know."""
    found = engine_of(session).resolve(SessionId("s"), reference)
    state = state_of(engine_of(session).vault.objects, found, "git")
    place = git_at_checkpoint_view(state, found)
    assert place is not None
    if place["dirty"] is None:
        return None
    assert place["dirty"] == len(place["dirty_files"])
    words = git_place(state, found)
    assert words is not None
    assert words.endswith(f", {place['dirty']} dirty") or not place["dirty"]
    return list(place["dirty_files"])


def as_git_counts(place: Path) -> list[str]:
    arguments = ("status", "--porcelain", "-uno", "--no-renames", "-z", ".")
    listed = git(place, "--no-optional-locks", *arguments).split("\0")
    return sorted(line[3:] for line in listed if line)


@pytest.mark.requirement("GT-1")
@pytest.mark.parametrize("scene", SCENES)
def test_in_every_state_of_a_repository_it_is_what_git_counts(tmp_path: Path, scene: str) -> None:
    place = tmp_path / "project"
    SCENES[scene](place)
    with SessionCheckpointer(place, "s") as session:
        expected = None if scene == "pointer" else as_git_counts(place)  # a filter has to tell
        assert recorded_dirty_files(session, session.checkpoint("why")) == expected


@pytest.mark.requirement("GT-1")
@pytest.mark.parametrize("seed", range(4))
def test_from_checkpoint_to_checkpoint_it_stays_what_git_counts(tmp_path: Path, seed: int) -> None:
    place, chance = with_history(tmp_path / "project"), random.Random(seed)
    for number in range(8):
        commit(place, f"src/{number}.py", f"{number}\n")
    (place / "link").symlink_to("code.txt")
    commit(place, "tool.sh", "#!/bin/sh\n")
    names = [*(f"src/{number}.py" for number in range(8)), "tool.sh", "docs/guide.txt", "new.txt"]

    def edit() -> None:
        write(place / chance.choice(names), f"{chance.randrange(3)}\n")

    def put_back() -> None:
        git(place, "checkout", "-q", "--", chance.choice(names[:8]), check=False)

    def delete() -> None:
        (place / chance.choice(names)).unlink(missing_ok=True)

    def touch() -> None:
        os.utime(place / "code.txt")

    def run_bit() -> None:
        if (place / "tool.sh").exists():
            (place / "tool.sh").chmod(chance.choice((0o644, 0o755)))

    def stage() -> None:
        git(place, "add", "-A", "--", chance.choice(names), check=False)

    def link() -> None:
        (place / "link").unlink()
        (place / "link").symlink_to(chance.choice(("code.txt", "other.txt")))

    def commit_all() -> None:
        git(place, "commit", "-qam", "more", check=False)

    def restore() -> None:
        told_after(session.restore_checkpoint(chance.choice(made)))

    def undo() -> None:
        with suppress(NothingToUndo):
            told_after(session.undo())

    def told_after(outcome: RestoreOutcome) -> None:
        shown = present_git(engine_of(session).vault, restored=outcome)
        assert shown is not None
        assert shown.dirty == len(as_git_counts(place)), outcome

    deeds: list[Callable[[], None]] = [edit, edit, edit, put_back, delete, touch, run_bit, stage]
    deeds += [link, commit_all, restore, restore, undo]
    with SessionCheckpointer(place, "s") as session:
        made = [session.checkpoint("first")]
        for number in range(25):
            chance.choice(deeds)()
            if chance.random() < 0.3:
                chance.choice(deeds)()
            shown = present_git(engine_of(session).vault, scan=engine_of(session).scan())
            assert shown is not None
            assert shown.dirty == len(as_git_counts(place)), number
            made.append(session.checkpoint(f"step {number}"))
            assert recorded_dirty_files(session, made[-1]) == as_git_counts(place), number


@pytest.mark.requirement("GT-1")
def test_only_what_changed_is_looked_at_when_git_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    looked: list[bytes] = []
    real = dirty_files._WorkingTree._is_dirty

    def counted(self: dirty_files._WorkingTree, path: bytes) -> bool:
        looked.append(path)
        return real(self, path)

    monkeypatch.setattr(dirty_files._WorkingTree, "_is_dirty", counted)
    with SessionCheckpointer(place, "s") as session:
        while True:  # until the clock can tell the last change in git from a further one
            session.checkpoint("again")
            if not looked:
                break
            looked.clear()
        write(place / "docs/guide.txt", "changed\n")
        assert recorded_dirty_files(session, session.checkpoint("one")) == ["docs/guide.txt"]
        assert looked == [b"docs/guide.txt"]
        write(place / "docs/guide.txt", "guide\n")
        write(place / "unknown.txt", "not git's\n")
        assert recorded_dirty_files(session, session.checkpoint("none")) == []
        assert looked == [b"docs/guide.txt"] * 2


@pytest.mark.requirement("GT-1", "PF-1")
def test_after_an_undo_files_that_the_scan_found_as_git_saw_them_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    for number in range(20):
        write(place / f"src/{number}.py", f"{number}\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "many")
    # Later than every file, so that the times in the index prove something.
    later_ns = time.time_ns() + 10**9
    os.utime(place / ".git/index", ns=(later_ns, later_ns))
    looked: list[bytes] = []
    real = dirty_files._WorkingTree._is_dirty

    def counted(self: dirty_files._WorkingTree, path: bytes) -> bool:
        looked.append(path)
        return real(self, path)

    monkeypatch.setattr(dirty_files._WorkingTree, "_is_dirty", counted)
    with SessionCheckpointer(place, "s") as session:
        while True:  # until the files and git have settled
            first = session.checkpoint("first")
            if not looked and time.time_ns() > later_ns + 10**8:
                break
            looked.clear()
        write(place / "src/3.py", "changed\n")
        session.checkpoint("second")
        session.restore_checkpoint(first)
        looked.clear()
        session.undo()
        assert set(looked) <= {b"src/3.py"}
        assert recorded_dirty_files(session, session.checkpoint("third")) == ["src/3.py"]
        assert set(looked) == {b"src/3.py"}
        looked.clear()
        shown = present_git(engine_of(session).vault, scan=engine_of(session).scan())
        assert shown is not None
        assert (shown.dirty, looked) == (1, [])
        outcome = session.restore_checkpoint(first)
        looked.clear()
        shown = present_git(engine_of(session).vault, restored=outcome)
        assert shown is not None
        assert (shown.dirty, looked) == (0, [b"src/3.py"])


@pytest.mark.requirement("GT-1", "PF-1")
def test_what_changed_since_is_known_without_a_tree_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    for number in range(20):
        commit(place, f"src/{number}/code.py", f"{number}\n")
    loaded: list[Digest] = []
    real = Vault.load_tree

    def counted(vault: Vault, digest: Digest) -> Tree:
        loaded.append(digest)
        return real(vault, digest)

    with SessionCheckpointer(place, "s") as session:
        while True:  # until the clock can tell the last change in git from a further one
            first = session.checkpoint("first")
            found = engine_of(session).resolve(SessionId("s"), first)
            state = state_of(engine_of(session).vault.objects, found, "git")
            if state is not None and "signature" in state.notes:
                break
        monkeypatch.setattr(Vault, "load_tree", counted)
        for number in range(20):
            write(place / f"src/{number}/code.py", "changed\n")
        assert len(recorded_dirty_files(session, session.checkpoint("second")) or ()) == 20
        assert loaded == []
        session.restore_checkpoint(first)
        loaded.clear()
        session.checkpoint("third")
        assert loaded == []


@pytest.mark.requirement("GT-1", "PF-1")
def test_a_file_that_stays_dirty_is_hashed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    read: list[bytes] = []
    real = repository.read_whole

    def counted(path: bytes) -> bytes:
        read.append(os.path.basename(path))
        return real(path)

    monkeypatch.setattr(dirty_files, "read_whole", counted)
    monkeypatch.setattr(dirty_files, "_SETTLED_NS", 0)  # the file needs no time to settle
    with SessionCheckpointer(place, "s") as session:
        write(place / "docs/guide.txt", "changed\n")
        session.checkpoint("first")
        read.clear()
        for number in range(3):
            write(place / "code.txt", f"{number}\n")
            dirty = recorded_dirty_files(session, session.checkpoint("more"))
            assert dirty == ["code.txt", "docs/guide.txt"]
        assert read == [b"code.txt"] * 3
        write(place / "docs/guide.txt", "guide\n")
        assert recorded_dirty_files(session, session.checkpoint("put back")) == ["code.txt"]


@pytest.mark.requirement("GT-1")
def test_in_a_directory_of_a_repository_its_own_files_count(tmp_path: Path) -> None:
    top = with_history(tmp_path / "project")
    write(top / "docs/guide.txt", "changed\n")
    write(top / "code.txt", "outside of the workspace\n")
    with SessionCheckpointer(top / "docs", "s") as session:
        assert recorded_dirty_files(session, session.checkpoint("why")) == ["guide.txt"]


@pytest.mark.requirement("GT-1")
def test_a_tracked_file_that_is_left_out_counts_anyway(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    commit(place, "large.bin", "x" * 5000)
    write(place / ".holdfast/config.toml", 'max_file_size = "2 KB"\n')
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("settled")
        write(place / "large.bin", "y" * 5000)
        assert recorded_dirty_files(session, session.checkpoint("why")) == ["large.bin"]


@pytest.mark.requirement("GT-1")
def test_where_only_a_filter_could_tell_nothing_is_reported(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    write(place / ".gitattributes", "*.big filter=lfs\n")
    commit(place, "model.big", "pointer\n")
    with SessionCheckpointer(place, "s") as session:
        write(place / "code.txt", "no filter for this\n")
        assert recorded_dirty_files(session, session.checkpoint("one")) == ["code.txt"]
        write(place / "model.big", "the real content\n")
        assert recorded_dirty_files(session, session.checkpoint("two")) is None


@pytest.mark.requirement("GT-1")
def test_line_ends_that_git_may_convert_are_not_called_dirty(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project", "core.autocrlf=true")
    write(place / "code.txt", "two\r\n")
    with SessionCheckpointer(place, "s") as session:
        assert recorded_dirty_files(session, session.checkpoint("why")) in (
            None,
            as_git_counts(place),
        )
        write(place / "code.txt", "two, and more\r\n")
        assert recorded_dirty_files(session, session.checkpoint("why")) == ["code.txt"]


@pytest.mark.requirement("GT-1", "PF-1")
def test_the_same_dirty_files_need_no_other_manifest(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        manifests = {}
        session.checkpoint("makes references that keep commits")
        wait_a_tick(place)  # until then, git is not trusted to be unchanged
        write(place / "code.txt", "edit\n")
        session.checkpoint("knows git as it stays")
        for number in range(3):
            write(place / "code.txt", f"edit {number}\n")
            saved = session.save_checkpoint(f"edit {number}").checkpoint
            manifests[saved.components] = read_states(engine_of(session).vault.objects, saved)
        assert len(manifests) == 1, manifests
