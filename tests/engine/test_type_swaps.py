"""A path that was one kind of thing and became another comes back as what it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.support.hostile_trees import fill
from tests.support.tree_hash import debris, describe, differences

pytestmark = [pytest.mark.requirement("CP-11"), pytest.mark.on_disk]


def _make_file(path: Path) -> None:
    fill(path, b"a file")


def _make_empty_directory(path: Path) -> None:
    path.mkdir()


def _make_directory(path: Path) -> None:
    fill(path / "inner/leaf", b"below")
    (path / "link").symlink_to("inner")
    (path / "empty").mkdir(mode=0o700)


def _make_symlink(path: Path) -> None:
    path.symlink_to("neighbour")


def _make_link_to_directory(path: Path) -> None:
    path.symlink_to("full")


def _make_nothing(path: Path) -> None:
    """The path is free."""


KINDS: dict[str, Callable[[Path], None]] = {
    "nothing": _make_nothing,
    "file": _make_file,
    "empty directory": _make_empty_directory,
    "directory": _make_directory,
    "symlink": _make_symlink,
    "link to directory": _make_link_to_directory,
}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


@pytest.mark.parametrize(("before", "after"), list(permutations(KINDS, 2)))
@pytest.mark.requirement("RB-2")
def test_a_path_returns_to_its_former_kind(tmp_path: Path, before: str, after: str) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "full/kept", b"untouched")
    fill(workspace / "neighbour", b"untouched")
    path = workspace / "path"
    KINDS[before](path)
    original = describe(workspace, mtimes=True)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint(before)
        _remove(path)
        KINDS[after](path)
        swapped = describe(workspace, mtimes=True)
        session.restore(first)
        assert differences(describe(workspace, mtimes=True), original) == []
        session.undo()
        assert differences(describe(workspace, mtimes=True), swapped) == []
        session.redo()
        assert differences(describe(workspace, mtimes=True), original) == []
    assert debris(workspace) == []


def test_two_paths_that_traded_places_return_to_theirs(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "one/file", b"1")
    fill(workspace / "two", b"2")
    original = describe(workspace, mtimes=True)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        (workspace / "one").rename(workspace / "aside")
        (workspace / "two").rename(workspace / "one")
        (workspace / "aside").rename(workspace / "two")
        session.restore(first)
    assert differences(describe(workspace, mtimes=True), original) == []


@pytest.mark.requirement("RB-9")
def test_untouched_files_keep_inode_and_time_and_rewritten_ones_get_those_of_the_checkpoint(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "project"
    untouched = fill(workspace / "untouched", b"same")
    touched = fill(workspace / "touched", b"same")
    rewritten = fill(workspace / "rewritten", b"old", 0o640)
    (workspace / "link").symlink_to("old")
    for path in (untouched, touched, rewritten, workspace / "link"):
        os.utime(path, ns=(10**18, 10**18 + 123_456_789), follow_symlinks=False)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        inode = untouched.stat().st_ino
        os.utime(touched, ns=(10**18, 1_500_000_000_000_000_001))
        rewritten.write_bytes(b"new")
        rewritten.chmod(0o600)
        (workspace / "link").unlink()
        (workspace / "link").symlink_to("new")
        assert session.restore(first) == 2
    assert untouched.stat().st_ino == inode
    assert untouched.stat().st_mtime_ns == 10**18 + 123_456_789
    assert touched.stat().st_mtime_ns == 1_500_000_000_000_000_001
    assert rewritten.stat().st_mtime_ns == 10**18 + 123_456_789
    assert rewritten.stat().st_mode & 0o7777 == 0o640
    assert (workspace / "link").lstat().st_mtime_ns == 10**18 + 123_456_789


@pytest.mark.requirement("CP-3")
def test_restore_counts_the_files_that_changed_on_disk(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    for name in ("deleted", "edited", "chmodded", "kept", "swapped"):
        fill(workspace / name, name.encode())
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        (workspace / "deleted").unlink()
        fill(workspace / "edited", b"changed")
        (workspace / "chmodded").chmod(0o600)
        fill(workspace / "new/file")
        _remove(workspace / "swapped")
        fill(workspace / "swapped/inner")
        assert session.restore(first) == 6
        assert session.restore(first) == 0
