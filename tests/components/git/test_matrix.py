"""Every state of a repository, everything that may happen to it, every way of bringing it back.

Compared with pictures of plain copies that were taken before, by git itself and by reading files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.engine.retention.deletion import delete
from tests.behind_the_api import engine_of
from tests.components.git.repositories import (
    ACTIONS,
    SCENES,
    Picture,
    copied,
    git,
    git_directory,
    missing_objects,
    picture,
)
from tests.support.strides import UNTIMED
from tests.support.tree_hash import describe


def files(place: Path) -> dict[bytes, object]:
    return {
        path: node
        for path, node in describe(place).items()
        if b".git" not in path.split(b"/") and not path.startswith(b".holdfast")
    }


# Every scene with two actions and every action with four scenes; `make torture` has them all.
SLICE = 3
CELLS = [
    pytest.param(scene, action, marks=() if (column + row) % SLICE == 0 else UNTIMED)
    for row, scene in enumerate(SCENES)
    for column, action in enumerate(ACTIONS)
]


@pytest.mark.requirement("GT-1", "GT-2", "GT-6", "BX-6")
@pytest.mark.parametrize(("scene", "action"), CELLS)
def test_whatever_happens_to_a_repository_comes_back_and_can_be_undone(
    tmp_path: Path, scene: str, action: str
) -> None:
    place = tmp_path / "project"
    SCENES[scene](place)
    untouched_copy = copied(place, tmp_path / "before") if (place / ".git").is_dir() else None
    before, before_files = picture(place), files(place)
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("before the agent")
        assert saved.degraded == ()
        assert picture(place) == before, "saving changes nothing"
        ACTIONS[action](place)
        after, after_files = picture(place), files(place)
        for mode in ("files", "exact", "branch", "revert"):
            done = session.restore_checkpoint(saved.checkpoint.id, components={"git": mode})
            now = picture(place)
            assert files(place) == before_files, mode
            assert now.untouched == after.untouched, mode
            assert _stash(now) == _stash(after), mode
            CHECKS[mode](place, before, after, now)
            if mode != "files":
                assert now.index == before.index, mode
                assert missing_objects(place) == "", mode
            if not done.recorded:
                assert now == after, "nothing was to be done"
                continue
            session.undo()
            undone = picture(place)
            assert files(place) == after_files, mode
            assert undone == after, mode
        session.restore_checkpoint(saved.checkpoint.id, components={"git": "exact"})
    if untouched_copy is not None:
        assert git(place, "ls-files", "--stage") == git(untouched_copy, "ls-files", "--stage")
        if before.refs.get("refs/heads/main"):
            listing = ("rev-list", "--objects", "HEAD")
            assert git(place, *listing) == git(untouched_copy, *listing)


def _stash(seen: Picture) -> str | None:
    return seen.refs.get("refs/stash")


def _branch(seen: Picture) -> str | None:
    return seen.head[5:].strip() if seen.head.startswith("ref: ") else None


def _branch_or_rebased(seen: Picture) -> str | None:
    rebased = seen.operation.get("rebase-merge/head-name")
    return _branch(seen) if rebased is None else rebased.decode().strip()


def _without(refs: dict[str, str], *names: str | None) -> dict[str, str]:
    return {name: oid for name, oid in refs.items() if name not in names}


def _check_files(place: Path, before: Picture, after: Picture, now: Picture) -> None:
    assert (now.head, now.index, now.refs, now.operation) == (
        after.head,
        after.index,
        after.refs,
        after.operation,
    )


def _check_exact(place: Path, before: Picture, after: Picture, now: Picture) -> None:
    assert now.head == before.head
    assert now.operation == before.operation
    assert now.status.replace("\r", "") == before.status.replace("\r", "")
    branch = _branch_or_rebased(before)
    if branch is not None:
        assert now.refs.get(branch) == before.refs.get(branch)
    assert _without(now.refs, branch) == _without(after.refs, branch), "other branches stay"


def _check_branch(place: Path, before: Picture, after: Picture, now: Picture) -> None:
    branch = _branch(now)
    assert branch is not None
    assert branch.startswith("refs/heads/restore/")
    tip = git(place, "rev-parse", "-q", "--verify", "HEAD", check=False).strip()
    assert tip == _commit(before)
    assert _without(now.refs, branch) == after.refs, "no branch of the user moves"


def _check_revert(place: Path, before: Picture, after: Picture, now: Picture) -> None:
    assert now.head.startswith("ref: ") == after.head.startswith("ref: ")
    branch = _branch(after)
    assert _branch(now) == branch
    assert _without(now.refs, branch) == _without(after.refs, branch)
    if (was := _commit(after)) and was != git(place, "rev-parse", "HEAD").strip():
        assert git(place, "rev-parse", "HEAD^").strip() == was, "one commit, on top"
    if wanted := _commit(before):
        assert _tree(place, "HEAD") == _tree(place, wanted)


def _commit(seen: Picture) -> str:
    line = seen.status.splitlines()[0]
    oid = line.removeprefix("# branch.oid ")
    return "" if oid == "(initial)" else oid


def _tree(place: Path, commit: str) -> str:
    return git(place, "rev-parse", f"{commit}^{{tree}}").strip()


CHECKS = {
    "files": _check_files,
    "exact": _check_exact,
    "branch": _check_branch,
    "revert": _check_revert,
}


@pytest.mark.requirement("GT-1")
@pytest.mark.parametrize("scene", SCENES)
def test_a_checkpoint_leaves_nothing_but_what_keeps_commits_alive(
    tmp_path: Path, scene: str
) -> None:
    place = tmp_path / "project"
    SCENES[scene](place)
    own = git_directory(place)
    before = {p: n for p, n in describe(own).items() if not _is_ours(p)}
    with SessionCheckpointer(place, "s") as session:
        checkpoint = session.checkpoint("why")
        again = session.checkpoint("why not")
        assert {p: n for p, n in describe(own).items() if not _is_ours(p)} == before
        kept = git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split()
        assert len(kept) == 1
        for identifier in (checkpoint, again):
            delete(engine_of(session), engine_of(session).resolve(session._id, identifier))
        assert git(place, "for-each-ref", "refs/holdfast") == ""


def _is_ours(path: bytes) -> bool:
    """What keeps commits alive: references, and objects, which git collects on its own."""
    return path.startswith((b"refs/holdfast", b"objects")) or path == b"refs"
