"""Keeping a SQLite database that others write to as it is, while its files are copied or replaced.

**Hold.** A reading transaction of SQLite itself is held. In rollback mode no writer can then touch
the file; with a write-ahead log writers go on, but the log cannot be begun anew, so a copy of the
file and then of the log is one state, whatever is moved from one to the other meanwhile.

Not guaranteed: closing any handle of a file drops the locks that the same process has on it. The
caller reads the database file first and last of all what has locks of its own (`-shm`).

**Pause.** The moment between two transactions of a database with a rollback journal: the lock that
every writer needs for a whole transaction is taken, as SQLite itself would. While it is held, no
journal beside the file belongs to a transaction; and a writer that still has the file open when it
has been replaced finds that out before it makes a journal, and writes nothing.

Not covered by a pause: a database with a write-ahead log, whose writers have other locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from holdfast.domain.sqlite_files import COMPANIONS, HEADER

_TRIES = 6_000
_BETWEEN_TRIES_S = 0.0005
"""SQLite's own waiting sleeps so long that it hardly ever meets the gaps of a busy writer."""

_GET_PATH = 50
_PATH_BYTES = 1024


@contextmanager
def hold(name: bytes, dir_fd: int) -> Iterator[bool]:
    """Whether it is held: False when it is no database, or one that cannot be read now."""
    connection = None
    with contextlib.suppress(apsw.Error, OSError, UnicodeError):
        connection = _reading(name, dir_fd)
    try:
        yield connection is not None
    finally:
        if connection is not None:
            connection.close()


def _reading(name: bytes, dir_fd: int) -> apsw.Connection:
    path = os.path.join(path_of(dir_fd), name)
    require_same(path, name, dir_fd)
    require_plain_beside(name, dir_fd)
    connection = apsw.Connection(path.decode(), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        pause = threading.Event()
        connection.set_busy_handler(
            lambda tried: not pause.wait(_BETWEEN_TRIES_S) and tried < _TRIES
        )
        # Being the last to close would otherwise move the log into the database.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        require_same(path, name, dir_fd)
    except BaseException:
        connection.close()
        raise
    return connection


def path_of(dir_fd: int) -> bytes:
    if sys.platform == "darwin":
        import fcntl

        return fcntl.fcntl(dir_fd, _GET_PATH, bytes(_PATH_BYTES)).rstrip(b"\0")
    return os.readlink(b"/proc/self/fd/%d" % dir_fd)


def require_same(path: bytes, name: bytes, dir_fd: int) -> None:
    """SQLite opens by path: what it reached has to be what the handle leads to."""
    by_path = os.stat(path, follow_symlinks=False)
    by_handle = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if not stat.S_ISREG(by_path.st_mode) or not os.path.samestat(by_path, by_handle):
        raise FileNotFoundError(path)


def require_plain_beside(name: bytes, dir_fd: int) -> None:
    """SQLite opens whatever bears the names of its log and journal, and waits for a pipe."""
    for suffix in COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            beside = os.stat(name + suffix, dir_fd=dir_fd, follow_symlinks=False)
            if not stat.S_ISREG(beside.st_mode):
                raise OSError(errno.EINVAL, f"{suffix.decode()} beside it is no file")


_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_RESERVED_BYTE = 0x40000001
_BUSY = (errno.EAGAIN, errno.EACCES)
_PAUSE_TRIES = 4_000
_BETWEEN_PAUSE_TRIES_S = 0.0005

# A lock of the open file where there is one: that of a process ends with any handle it closes.
_SET_LOCK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_LOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, process


@contextmanager
def pause(name: bytes, dir_fd: int) -> Iterator[bool]:
    """Whether no transaction is in progress, for the block. Also True for a file that is not a
    database, or that cannot be written."""
    fd = None
    with contextlib.suppress(OSError):
        fd = os.open(name, _FLAGS, dir_fd=dir_fd)
    try:
        yield fd is None or os.pread(fd, len(HEADER), 0) != HEADER or _locked(fd)
    finally:
        if fd is not None:
            os.close(fd)


def _locked(fd: int) -> bool:
    wanted = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _RESERVED_BYTE, 1, 0)
    wait = threading.Event()
    for _ in range(_PAUSE_TRIES):
        try:
            fcntl.fcntl(fd, _SET_LOCK, wanted)
        except OSError as error:
            if error.errno not in _BUSY:
                return True  # a file system without locks, on which nobody else has any either
            wait.wait(_BETWEEN_PAUSE_TRIES_S)
        else:
            return True
    return False
