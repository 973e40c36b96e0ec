"""Finding the moment between two transactions of a SQLite database with a rollback journal.

The lock that every writer needs for a whole transaction is taken, as SQLite itself would. While it
is held, no journal beside the file belongs to a transaction; and a writer that still has the file
open when it has been replaced finds that out before it makes a journal, and writes nothing.

Not covered: a database with a write-ahead log, whose writers have other locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.domain.sqlite_files import HEADER

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_RESERVED_BYTE = 0x40000001
_BUSY = (errno.EAGAIN, errno.EACCES)
_TRIES = 4_000
_BETWEEN_TRIES_S = 0.0005

# A lock of the open file where there is one: that of a process ends with any handle it closes.
_SET_LOCK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_LOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, process


@contextmanager
def pause(name: bytes, dir_fd: int) -> Iterator[bool]:
    """Whether no transaction is under way, for the block; also True for what is no database, or
    none that could be written."""
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
    for _ in range(_TRIES):
        try:
            fcntl.fcntl(fd, _SET_LOCK, wanted)
        except OSError as error:
            if error.errno not in _BUSY:
                return True  # a file system without locks, on which nobody else has any either
            wait.wait(_BETWEEN_TRIES_S)
        else:
            return True
    return False
