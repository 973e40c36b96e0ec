"""Capturing a SQLite database with its log, as one state, while others write to it.

    the log's beginning → the database → the log → the log's beginning again
    same beginning: everything that was moved into the database meanwhile is still in the log too
    otherwise once more, with the database held by a reading transaction

Guarantee: what is reported as whole is a state that the database had. Where no log is in use, that
is the database file alone, unchanged while it was read.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.domain.sqlite_files import HEADER, LOG, LOG_HEADER_BYTES
from holdfast.ports.filesystem import Filesystem
from holdfast.values.tuples import NamedTuple

if TYPE_CHECKING:
    from holdfast.ports.live_database import LiveDatabases

_ATTEMPTS = 4
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class PartRead(NamedTuple):
    """A file that was stored, if it is there: the numbers it had at the end of being read (the
    database is no longer held when its handle is closed), and whether it was one state of it."""

    stable: bool
    state: tuple[int, ...] | None


def is_database(fs: Filesystem, dir_fd: int, name: bytes) -> bool:
    return _beginning(fs, dir_fd, name, len(HEADER)) == HEADER


def read_as_one(
    fs: Filesystem,
    databases: LiveDatabases | None,
    dir_fd: int,
    name: bytes,
    read: Callable[[bytes], PartRead],
) -> bool:
    """Call `read` for the database and then for its log, until both are of one state. Without
    `databases` it cannot be held for that."""
    for attempt in range(_ATTEMPTS):
        with contextlib.ExitStack() as held:
            is_held = False
            if attempt > 0 and databases is not None:
                is_held = held.enter_context(databases.hold_database(name, dir_fd=dir_fd))
            if _read_once(fs, dir_fd, name, read, is_held=is_held):
                return True
    return False


def _read_once(
    fs: Filesystem, dir_fd: int, name: bytes, read: Callable[[bytes], PartRead], *, is_held: bool
) -> bool:
    log = name + LOG
    log_before = _beginning(fs, dir_fd, log, LOG_HEADER_BYTES)
    before = _state(fs, dir_fd, name)
    part = read(name)
    read(log)
    log_after = _beginning(fs, dir_fd, log, LOG_HEADER_BYTES)
    if log_before or log_after:
        return log_before == log_after
    return before == part.state and (part.stable or is_held)


def _beginning(fs: Filesystem, dir_fd: int, name: bytes, length: int) -> bytes:
    """Nothing when it is not there, cannot be read or is no plain file: a pipe is not opened."""
    try:
        if not stat.S_ISREG(fs.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            return b""
        fd = fs.open(name, _FLAGS, dir_fd=dir_fd)
    except OSError:
        return b""
    try:
        return fs.pread(fd, length, 0)
    except OSError:
        return b""
    finally:
        fs.close(fd)


def _state(fs: Filesystem, dir_fd: int, name: bytes) -> tuple[int, ...] | None:
    try:
        status = fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
