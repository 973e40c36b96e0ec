"""A scan that remembers finds exactly what a scan from nothing finds, whatever changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from holdfast.store.local_filesystem import LocalFilesystem
from tests.support.changing_trees import CHANGES, build
from tests.support.composition import Composed, composed, scan_from_nothing
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("RL-5")


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


def test_the_log_of_a_database_that_is_gone_is_judged_anew(tmp_path: Path) -> None:
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


def test_an_ignored_file_captured_for_a_restore_is_judged_anew(tmp_path: Path) -> None:
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
        assert {(s.path, s.describe()) for s in opened.engine.skipped(saved)} == skipped
        assert saved.tree == tree
