"""A scan that remembers finds exactly what a scan from nothing finds, whatever changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from holdfast.engine.discarding_writer import DiscardingWriter
from holdfast.engine.save import capture_policy
from holdfast.engine.scan.scanner import Scanner
from holdfast.store.local_filesystem import LocalFilesystem
from tests.support.composition import Composed, composed
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("RL-5")


def _from_nothing(opened: Composed) -> tuple[bytes, set[tuple[bytes, str]]]:
    vault = opened.engine.vault
    with vault.open_root() as root_fd:
        scan = Scanner(vault.fs, vault.objects, None).scan(
            root_fd,
            capture_policy(vault),
            DiscardingWriter(),
            generation="none",
            started_ns=vault.clock.now_ns(),
        )
    return scan.tree, {(skip.path, skip.describe()) for skip in scan.skipped}


def _drop_second_name(root: Path) -> None:
    (root / "two/linked").unlink()


def _add_third_name(root: Path) -> None:
    os.link(root / "one/linked", root / "three")


def _link_to_outside(root: Path) -> None:
    os.link(root / "one/plain", root.parent / "outside")


def _unlink_outside(root: Path) -> None:
    (root.parent / "elsewhere").unlink()


def _ignore_from_above(root: Path) -> None:
    fill(root / ".gitignore", b"plain\n*.log\n")


def _change_nested_rules(root: Path) -> None:
    fill(root / "two/.gitignore", b"!keep.log\nplain\n")


def _rules_become_a_link(root: Path) -> None:
    (root / "two/.gitignore").unlink()
    (root / "two/.gitignore").symlink_to("plain")


def _change_git_exclude(root: Path) -> None:
    fill(root / ".git/info/exclude", b"one/\n")


def _mark_as_cache(root: Path) -> None:
    fill(root / "one/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55")


def _retarget_link(root: Path) -> None:
    (root / "one/link").unlink()
    (root / "one/link").symlink_to("another")


def _turn_into_directory(root: Path) -> None:
    (root / "one/plain").unlink()
    fill(root / "one/plain/below", b"x")


def _turn_into_fifo(root: Path) -> None:
    (root / "one/plain").unlink()
    os.mkfifo(root / "one/plain")


def _change_directory_mode(root: Path) -> None:
    (root / "one").chmod(0o700)


def _change_mode(root: Path) -> None:
    (root / "one/plain").chmod(0o600)


def _touch(root: Path) -> None:
    os.utime(root / "one/plain", ns=(10**18, 10**18))


def _add_attribute(root: Path) -> None:
    os.setxattr(root / "one/plain", "user.note", b"x")


def _drop_attribute(root: Path) -> None:
    os.removexattr(root / "one/noted", "user.note")


def _edit_behind_the_times(root: Path) -> None:
    before = (root / "one/plain").stat()
    (root / "one/plain").write_bytes(b"nialp")
    os.utime(root / "one/plain", ns=(before.st_atime_ns, before.st_mtime_ns))


def _put_another_file(root: Path) -> None:
    before = (root / "one/plain").stat()
    fill(root / "one/other", b"other")
    os.utime(root / "one/other", ns=(before.st_atime_ns, before.st_mtime_ns))
    (root / "one/other").rename(root / "one/plain")


def _remove(root: Path) -> None:
    (root / "two/deep/deeper/file").unlink()


def _swap_directories(root: Path) -> None:
    (root / "one").rename(root / "aside")
    (root / "two").rename(root / "one")
    (root / "aside").rename(root / "two")


def _change_deep_file(root: Path) -> None:
    fill(root / "two/deep/deeper/file", b"changed")


def _grow_past_the_cap(root: Path) -> None:
    os.truncate(root / "one/plain", 200_000_000)


CHANGES: list[Callable[[Path], None]] = [
    _drop_second_name,
    _add_third_name,
    _link_to_outside,
    _unlink_outside,
    _ignore_from_above,
    _change_nested_rules,
    _rules_become_a_link,
    _change_git_exclude,
    _mark_as_cache,
    _retarget_link,
    _turn_into_directory,
    _turn_into_fifo,
    _change_directory_mode,
    _change_mode,
    _touch,
    _add_attribute,
    _drop_attribute,
    _edit_behind_the_times,
    _put_another_file,
    _remove,
    _swap_directories,
    _change_deep_file,
    _grow_past_the_cap,
]


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
    fill(root / "one/linked", b"two names")
    fill(root / "one/plain", b"plain")
    fill(root / "one/noted", b"noted")
    fill(root / "two/plain", b"plain")
    fill(root / "two/keep.log", b"log")
    fill(root / "two/deep/deeper/file", b"deep")
    fill(root / "two/.gitignore", b"nothing\n")
    fill(root / ".git/info/exclude", b"")
    os.link(root / "one/linked", root / "two/linked")
    fill(root / "half", b"half outside")
    os.link(root / "half", tmp_path / "elsewhere")
    (root / "one/link").symlink_to("plain")
    os.setxattr(root / "one/noted", "user.note", b"x")
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
