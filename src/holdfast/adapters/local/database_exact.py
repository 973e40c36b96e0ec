"""Gives a database the exact bytes of a state whose content it already has, while no program has it
open.

    a lease, granted only if no other handle of the file is open, that makes openers wait → the
    content is still the one that was written → log and journal → bytes that differ → read back

Guarantee: the content is the same at every moment, even after a crash. Log and journal of the state
come first, and each byte that differs is either replaced from them by SQLite, or one of its
counters. The system revokes the lease when a program has waited for long (usually 45 s). Nothing is
written once that may have happened, because others may write from then on.
Not guaranteed: success. Without such leases (Linux has them), for another user's file, or while a
program has it open, the bytes stay as SQLite wrote them.

Also copies and compares the bytes of database files, for writing through SQLite.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from blake3 import blake3

from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.ids import Digest
from holdfast.domain.sqlite_files import (
    JOURNAL,
    LOG,
    SHARED_MEMORY,
    DatabaseJob,
    without_bookkeeping,
)

OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20


@contextmanager
def opened(name: bytes, dir_fd: int, flags: int = os.O_RDONLY) -> Iterator[int]:
    fd = os.open(name, flags | OPEN_FLAGS, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def read_beginning(name: bytes, dir_fd: int, length: int) -> bytes:
    """The first bytes; empty if there is no such file."""
    try:
        with opened(name, dir_fd) as fd:
            return os.pread(fd, length, 0)
    except FileNotFoundError:
        return b""


def digest_of_handle(fd: int) -> Digest:
    hasher = blake3()
    position = 0
    while block := os.pread(fd, _BLOCK_BYTES, position):
        hasher.update(block)
        position += len(block)
    return Digest(hasher.digest())


def copy_to_new(source: int, name: bytes, area: int) -> int:
    """A handle of the copy, which replaces an earlier attempt's file of that name."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=area)
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600, dir_fd=area)
    try:
        position = 0
        while block := os.pread(source, _BLOCK_BYTES, position):
            write_at(fd, block, position)
            position += len(block)
    except BaseException:
        os.close(fd)
        raise
    return fd


def write_at(fd: int, data: bytes, position: int) -> None:
    while data:
        written = os.pwrite(fd, data, position)
        data, position = data[written:], position + written


def same_content(fd: int, source: int, size: int) -> bool:
    """Whether the first is a database of `size` bytes without a log, equal to the second except for
    SQLite's counters."""
    if os.fstat(fd).st_size != size:
        return False
    for start in range(0, size, _BLOCK_BYTES):
        length = min(_BLOCK_BYTES, size - start)
        one, other = os.pread(fd, length, start), os.pread(source, length, start)
        if start == 0:
            one, other = without_bookkeeping(one), without_bookkeeping(other)
        if one != other:
            return False
    return True


_COMPARED_BYTES = 1 << 16
_TRIES = 40
_BETWEEN_TRIES_S = 0.002
"""A program that only copies or reads the file is soon done."""

_WHILE_OTHERS_WAIT_S = 5.0
"""Much shorter than the time after which the system revokes the lease."""


def make_exact(job: DatabaseJob, dir_fd: int, area: int, folded: int, size: int) -> bool:
    """`folded` is the state as one file, with `size` bytes of database. False if it is not
    possible, or if the file was written since."""
    with opened(job.name, dir_fd, os.O_RDWR) as live:  # closing it ends the lease
        if not take_lease(live):
            return False
        lease = _Lease(live)
        if not _is_settled(job, dir_fd, live, folded, size) or not lease.lasts():
            return False
        _place_companions(job, dir_fd, area)
        if not _write_differences(live, job.slots[b""], area, lease):
            return False
        found = digest_of_handle(live)
        if not lease.lasts():
            return False
        if found != job.wanted[b""]:
            raise OSError(errno.EIO, "the database reads back differently from what was written")
        os.fchmod(live, job.mode)
        os.utime(live, ns=(job.mtime_ns, job.mtime_ns))
        sync_to_disk(live)
        return True


def take_lease(fd: int) -> bool | None:
    """Whether the file is leased, so that no other handle of it is open; closing this one ends the
    lease. None if the system grants none."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    wait = threading.Event()
    for _ in range(_TRIES):
        try:
            # A program that opens it now waits, and the kernel sends a signal that is ignored.
            fcntl.fcntl(fd, fcntl.F_SETSIG, int(signal.SIGURG))
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            wait.wait(_BETWEEN_TRIES_S)
        except OSError:
            return None
        else:
            return True
    return False


class _Lease:
    """Tracks whether another program can have opened the file: not if none was waiting a moment
    ago."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._alone_ns = SystemClock.monotonic_ns()

    def lasts(self) -> bool:
        now_ns = SystemClock.monotonic_ns()
        # A waiting program and the end of the lease look the same from here.
        if fcntl.fcntl(self._fd, fcntl.F_GETLEASE) == fcntl.F_WRLCK:
            self._alone_ns = now_ns
            return True
        return now_ns - self._alone_ns < int(_WHILE_OTHERS_WAIT_S * 1e9)


def _is_settled(job: DatabaseJob, dir_fd: int, live: int, folded: int, size: int) -> bool:
    """It was not written since, and no log or journal belongs to the content."""
    named = os.stat(job.name, dir_fd=dir_fd, follow_symlinks=False)
    if not os.path.samestat(named, os.fstat(live)) or named.st_nlink > 1:
        return False
    if any(read_beginning(job.name + suffix, dir_fd, 8).strip(b"\0") for suffix in (LOG, JOURNAL)):
        return False
    return same_content(live, folded, size)


def _place_companions(job: DatabaseJob, dir_fd: int, area: int) -> None:
    for suffix in (LOG, JOURNAL, SHARED_MEMORY):
        name = job.name + suffix
        if suffix in job.slots:
            os.rename(job.slots[suffix], name, src_dir_fd=area, dst_dir_fd=dir_fd)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=dir_fd)
    sync_to_disk(dir_fd)


def _write_differences(live: int, slot: bytes, area: int, lease: _Lease) -> bool:
    """False if it had to stop early."""
    position = 0
    with opened(slot, area) as wanted:
        while block := os.pread(wanted, _COMPARED_BYTES, position):
            if os.pread(live, len(block), position) != block:
                if not lease.lasts():
                    return False
                write_at(live, block, position)
            position += len(block)
    if os.fstat(live).st_size != position:
        if not lease.lasts():
            return False
        os.ftruncate(live, position)
    return True
