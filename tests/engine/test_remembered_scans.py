"""A scan that remembers finds exactly what a scan from nothing finds, whatever changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.ids import Digest
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.restore.plan import read_report
from holdfast.engine.stored_objects import list_entries
from tests.support.changing_trees import CHANGES, build
from tests.support.composition import Composed, composed, configure, scan_from_nothing
from tests.support.hostile_trees import fill
from tests.support.watched_filesystem import Call, WatchedFilesystem

pytestmark = [pytest.mark.requirement("RL-5"), pytest.mark.on_disk]


def _from_nothing(opened: Composed) -> tuple[bytes, set[tuple[bytes, str]]]:
    scan = scan_from_nothing(opened.engine.vault)
    return scan.tree, {(skip.path, skip.describe()) for skip in scan.skipped}


class OneByOne(LocalFilesystem):
    """A system that cannot be asked about many names at once."""

    @staticmethod
    def stat_all(names: Sequence[bytes], *, dir_fd: int) -> bytes | None:
        return None


@pytest.mark.parametrize("fs", [LocalFilesystem(), OneByOne()], ids=["at once", "one by one"])
@pytest.mark.parametrize("reopened", [False, True], ids=["same process", "other process"])
@pytest.mark.parametrize("beside", [(), ("new", "one/new", "two/new")], ids=["alone", "beside"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_from_memory_as_it_is_from_nothing(
    tmp_path: Path,
    change: Callable[[Path], None],
    beside: Sequence[str],
    reopened: bool,
    fs: LocalFilesystem,
) -> None:
    """`beside` are files that are new, so that the directories of the change are listed again."""
    root = tmp_path / "project"
    build(root)
    threading.Event().wait(0.03)  # old enough to be trusted from memory
    with composed(root, fs=fs) as opened:
        opened.save()
        opened.save()
        if not reopened:
            _change_and_compare(opened, root, change, beside)
    if reopened:
        with composed(root, fs=fs) as opened:
            _change_and_compare(opened, root, change, beside)


INCLUDED = {
    "a name": ([".env"], {b"pkg/target/.env"}),
    "a name everywhere": (["**/.env"], {b"pkg/target/.env", b"pkg/cache/.env"}),
    "an ignored directory": (["pkg/notes/"], {b"pkg/notes/a.log", b"pkg/notes/sub/b.log"}),
    "a directory that nothing ignores": (["/pkg/src/"], {b"pkg/src/c.log", b"pkg/src/sub/d.log"}),
    "a path": (["pkg/notes/sub/b.log"], {b"pkg/notes/sub/b.log"}),
}


def _deep_change(root: Path) -> None:
    for place in ("target/deep", "notes/sub", "src/sub", "cache/deep"):
        fill(root / "pkg" / place / "new.log", b"new")


def _first_level_change(root: Path) -> None:
    for place in ("target", "notes", "src", "cache"):
        fill(root / "pkg" / place / "new.log", b"new")


def _unrelated_change(root: Path) -> None:
    fill(root / "other/file", b"changed")


def _nothing(root: Path) -> None:
    pass


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize("reopened", [False, True], ids=["same process", "other process"])
@pytest.mark.parametrize("change", [_nothing, _unrelated_change, _first_level_change, _deep_change])
@pytest.mark.parametrize("included", INCLUDED)
def test_what_is_included_below_ignored_directories_is_found_from_memory_too(
    tmp_path: Path, included: str, change: Callable[[Path], None], reopened: bool
) -> None:
    patterns, expected = INCLUDED[included]
    root = tmp_path / "project"
    fill(root / ".gitignore", b"target/\nnotes/\n*.log\n")
    fill(root / "other/file")
    for path in ("target/.env", "target/object", "target/deep/object", "notes/a.log"):
        fill(root / "pkg" / path)
    for path in ("notes/sub/b.log", "src/c.log", "src/sub/d.log", "cache/.env", "cache/object"):
        fill(root / "pkg" / path)
    fill(root / "pkg/cache/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55")
    configure(root, include=patterns)
    threading.Event().wait(0.03)
    with composed(root) as opened:
        plain = {b".gitignore", b"other/file"}
        for _ in range(3):
            assert _files(opened, opened.save().tree) == expected | plain
        if not reopened:
            change(root)
            _compare(opened)
    if reopened:
        change(root)
        with composed(root) as opened:
            _compare(opened)


def _files(opened: Composed, tree: Digest) -> set[bytes]:
    listed = list_entries(opened.engine.vault.load_tree, tree, b"")
    return {path for path, entry in listed if isinstance(entry, FileEntry)}


def test_the_log_of_a_database_that_is_gone_is_judged_again(tmp_path: Path) -> None:
    root = tmp_path / "project"
    fill(root / ".gitignore", b"*-wal\n")
    fill(root / "data", b"SQLite format 3\0" + bytes(84))
    fill(root / "data-wal", b"captured with its database, although ignored")
    threading.Event().wait(0.03)
    with composed(root) as opened:
        opened.save()
        assert opened.save().files == 3
        (root / "data").unlink()
        _compare(opened)


@pytest.mark.requirement("DB-1")
@pytest.mark.parametrize("beside", ["data-journal", "data-shm"])
def test_a_database_that_its_log_brings_does_not_bring_other_things_once_it_is_known(
    tmp_path: Path, beside: str
) -> None:
    root = tmp_path / "project"
    fill(root / ".gitignore", b"data*\n")
    fill(root / "data", b"SQLite format 3\0" + bytes(84))
    fill(root / "data-wal", b"included")
    fill(root / beside, bytes(4096))
    configure(root, include=["data-wal"])
    threading.Event().wait(0.03)
    with composed(root) as opened:
        _compare(opened)
        fill(root / "new", b"so that the directory is listed again")
        _compare(opened)


@pytest.mark.requirement("DB-1")
@pytest.mark.parametrize("beside", ["data-journal", "data-wal", "data-shm"])
@pytest.mark.parametrize("ignored", ["", "*-*", "data"])
@pytest.mark.parametrize("first", [b"no database", b"SQLite format 3\0" + bytes(84)])
def test_what_is_beside_a_file_that_turns_into_a_database_is_judged_again(
    tmp_path: Path, beside: str, ignored: str, first: bytes
) -> None:
    """Written in place: nothing but the file itself changes, not even its directory."""
    root = tmp_path / "project"
    fill(root / ".gitignore", f"{ignored}\n".encode())
    fill(root / "data", first)
    fill(root / beside, bytes(4096))
    threading.Event().wait(0.03)
    with composed(root) as opened:
        opened.save()
        for second in (b"SQLite format 3\0" + bytes(84), b"no database any more"):
            fill(root / "data", second)
            _compare(opened)
            threading.Event().wait(0.03)
            _compare(opened)


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize("where", ["", "sub/"])
def test_rules_that_were_others_for_a_moment_are_not_taken_for_those_before_and_after(
    tmp_path: Path, where: str
) -> None:
    """An agent edits an ignore file while a save runs, and reverts the edit."""
    root = tmp_path / "project"
    fill(root / f"{where}.gitignore", b"others\n")
    fill(root / f"{where}below/kept.log")
    threading.Event().wait(0.03)

    def edit(call: Call) -> None:
        if call.member == "open" and b"below" in call.names():
            fill(root / f"{where}.gitignore", b"*.log\n")

    fs = WatchedFilesystem()
    with composed(root, fs=fs.as_port()) as opened:
        for _ in range(2):
            opened.save()
        fill(root / f"{where}below/new")
        threading.Event().wait(0.03)
        fs.before = edit
        opened.save()
        fs.before = lambda call: None
        assert (root / f"{where}.gitignore").read_bytes() == b"*.log\n"
        fill(root / f"{where}.gitignore", b"others\n")
        _compare(opened)


def test_an_ignored_file_captured_for_a_restore_is_judged_again(tmp_path: Path) -> None:
    root = tmp_path / "project"
    fill(root / ".git/info/exclude", b"")
    fill(root / "notes.log", b"the same all the time")
    fill(root / "edited", b"before")
    with composed(root) as opened:
        first = opened.save()
        fill(root / ".git/info/exclude", b"*.log\n")
        fill(root / "edited", b"after")
        threading.Event().wait(0.03)
        opened.restore(first.id)  # which looks at the file, because the checkpoint has it
        _compare(opened)


def _change_and_compare(
    opened: Composed, root: Path, change: Callable[[Path], None], beside: Sequence[str]
) -> None:
    change(root)
    for name in beside:
        fill(root / name, b"new")
    _compare(opened)


def _compare(opened: Composed) -> None:
    for _ in range(2):
        saved = opened.save()
        tree, skipped = _from_nothing(opened)
        assert {(s.path, s.describe()) for s in read_report(opened.engine.vault, saved)} == skipped
        assert saved.tree == tree
