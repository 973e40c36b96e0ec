"""A small workspace with something of everything that scans remember, and what can happen to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.hostile_trees import fill


def build(root: Path) -> None:
    """In `root`, and one name of a file beside it."""
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
    os.link(root / "half", root.parent / "elsewhere")
    (root / "one/link").symlink_to("plain")
    fill(root / "cache/CACHEDIR.TAG", b"")
    fill(root / "cache/deep/file", b"cached")
    os.setxattr(root / "one/noted", "user.note", b"x")


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


def _write_the_mark_of_a_cache(root: Path) -> None:
    fill(root / "cache/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55")


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
    _write_the_mark_of_a_cache,
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
