"""A branch merged into main leads to a checkpoint of its own kind, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.app.automation.merges import NAME, keep_merge
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.components.git import commands
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from tests.components.git.repositories import commit, git, new_repository
from tests.support.composition import configure

pytestmark = pytest.mark.requirement("AU-4")

SESSION = SessionId("work")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """On main, with a branch `feature` that is one commit ahead."""
    root = new_repository(tmp_path / "shop")
    commit(root, "code.txt", "one\n")
    git(root, "checkout", "-qb", "feature")
    commit(root, "feature.txt", "new\n")
    git(root, "checkout", "-q", "main")
    return root


@contextmanager
def known(place: Path) -> Iterator[OpenWorkspace]:
    """Open, and looked at once."""
    with open_workspace(place, create=True) as opened:
        assert look(opened) is None
        yield opened


def look(opened: OpenWorkspace) -> str | None:
    """The reason of the checkpoint that was made, if one was."""
    kept = keep_merge(opened, SESSION).kept
    if kept is None:
        return None
    assert kept.checkpoint.kind is Kind.MERGE
    return kept.checkpoint.intent.reasoning


def test_a_fast_forward_of_another_branch_is_kept_once(place: Path) -> None:
    with known(place) as opened:
        git(place, "merge", "-q", "feature")
        assert look(opened) == "Merged feature into main"
        assert look(opened) is None


def test_a_merge_of_two_lines_is_kept(place: Path) -> None:
    with known(place) as opened:
        commit(place, "mine.txt", "mine\n")
        git(place, "merge", "-q", "--no-edit", "feature")
        assert look(opened) == "Merged feature into main"


def test_a_merge_that_is_ended_by_hand_is_kept_when_it_has_ended(place: Path) -> None:
    with known(place) as opened:
        git(place, "merge", "-q", "--no-ff", "--no-commit", "feature")
        pending = keep_merge(opened, SESSION)
        assert (pending.kept, pending.under_way) == (None, True)
        git(place, "commit", "-qm", "together")
        assert look(opened) == "Merged a branch into main"
        assert not keep_merge(opened, SESSION).under_way


def test_a_pull_is_kept(place: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(place), "clone")
    clone = tmp_path / "clone"
    with known(clone) as opened:
        git(place, "merge", "-q", "feature")
        git(clone, "pull", "-q")
        assert look(opened) == "Pulled into main"


@pytest.mark.parametrize(
    "work",
    [
        ("commit", "-q", "--allow-empty", "-m", "merge: in name only"),
        ("commit", "-q", "--amend", "-m", "other words"),
        ("cherry-pick", "feature"),
        ("reset", "-q", "--hard", "feature"),
        ("checkout", "-q", "feature"),
        ("branch", "-f", "other", "feature"),
        ("update-ref", "-m", "reset: by hand", "refs/heads/main", "feature"),
    ],
    ids=lambda work: " ".join(work[:2]),
)
def test_other_work_is_no_merge(place: Path, work: tuple[str, ...]) -> None:
    with known(place) as opened:
        git(place, *work)
        assert look(opened) is None


def test_a_merge_that_was_undone_is_none(place: Path) -> None:
    with known(place) as opened:
        git(place, "merge", "-q", "feature")
        git(place, "reset", "-q", "--hard", "HEAD~1")
        commit(place, "mine.txt", "mine\n")
        assert look(opened) is None


def test_without_a_log_git_is_asked(place: Path) -> None:
    git(place, "config", "core.logAllRefUpdates", "false")
    (place / ".git/logs/refs/heads/main").unlink()
    with known(place) as opened:
        git(place, "merge", "-q", "feature")
        assert look(opened) == "Merged feature into main"
        commit(place, "mine.txt", "mine\n")
        assert look(opened) is None
        git(place, "checkout", "-qb", "side", "HEAD~1")
        commit(place, "side.txt", "side\n")
        git(place, "checkout", "-q", "main")
        git(place, "merge", "-q", "--no-edit", "side")
        git(place, "branch", "-qD", "side")
        assert look(opened) == "Merged a branch into main"


def test_main_is_compared_when_head_is_on_it(place: Path) -> None:
    git(place, "checkout", "-qb", "third")
    with known(place) as opened:
        git(place, "fetch", "-q", ".", "feature:main")
        assert look(opened) is None
        git(place, "merge", "-q", "feature")
        assert look(opened) is None
        git(place, "checkout", "-q", "main")
        assert look(opened) == "Merged feature into main"


def test_the_names_of_main_branches_are_a_setting(place: Path) -> None:
    git(place, "branch", "-qm", "main", "trunk")
    configure(place, auto_merge=["trunk"])
    with known(place) as opened:
        git(place, "merge", "-q", "feature")
        assert look(opened) == "Merged feature into trunk"
    configure(place, auto_merge=[])
    git(place, "checkout", "-q", "feature")
    commit(place, "more.txt", "more\n")
    git(place, "checkout", "-q", "trunk")
    with known(place) as opened:
        git(place, "merge", "-q", "feature")
        assert look(opened) is None


def test_packed_references_and_a_linked_worktree_are_read(place: Path, tmp_path: Path) -> None:
    git(place, "checkout", "-q", "feature")
    git(place, "worktree", "add", "-q", str(tmp_path / "linked"), "main")
    git(place, "pack-refs", "--all")
    with known(tmp_path / "linked") as opened:
        git(tmp_path / "linked", "merge", "-q", "feature")
        assert look(opened) == "Merged feature into main"


def test_no_process_is_started_while_the_branch_has_not_moved(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with known(place) as opened:

        def never(*_: object) -> str:
            raise AssertionError("git was looked for")

        monkeypatch.setattr(commands, "find_git", never)
        assert look(opened) is None
        monkeypatch.undo()
        git(place, "merge", "-q", "feature")
        assert look(opened) is not None


@pytest.mark.parametrize(
    "damage", [b"", b"[]", b"nonsense", b'{"main": 7}', b'{"main": "../x"}', b"[" * 60_000]
)
def test_a_note_that_is_damaged_is_recreated(place: Path, damage: bytes) -> None:
    with known(place) as opened:
        (opened.store.directory / NAME).write_bytes(damage)
        assert look(opened) is None
        git(place, "merge", "-q", "feature")
        assert look(opened) == "Merged feature into main"


def test_another_repository_in_the_same_place_is_no_merge(place: Path) -> None:
    import shutil

    with known(place) as opened:
        shutil.rmtree(place / ".git")
        assert look(opened) is None
        new_repository(place)
        commit(place, "code.txt", "two\n")
        assert look(opened) is None
        (place / ".git/HEAD").write_bytes(b"ref: \xff\0")
        assert look(opened) is None


def test_a_merge_whose_checkpoint_fails_is_kept_the_next_time(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with known(place) as opened:
        git(place, "merge", "-q", "feature")

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as failing:
            failing.setattr(opened.engine, "save", full)
            with pytest.raises(OSError, match="No space"):
                look(opened)
        assert look(opened) == "Merged feature into main"
