"""Reading a file that others may be writing.

    open without following links → fstat → is there a writer? → read → fstat again
    → nothing changed and no program was writing: done, else again, else say so

A change of times alone does not tell: one long write sets the time when it begins and can still be
copying when both looks are done. So for a file that changed a moment ago, the system is asked
whether a program has it open for writing; if that is unknown, two reads must agree. They must also
where a file has a writer and times that did not change lately, because of the writes through a
mapping only the first to a page changes the times, until the system has written the page out. So it
is made to do that before the reads; such a file is read again by the next scan, too.

Guarantee: content reported as stable is one state of the file. Special files are never opened for
reading. Not guaranteed: a kernel whose file times tick coarsely can hide an open, a write and a
close that all happen within the tick of the previous change, while we read; such a file is read
again by the next scan. And where nothing is ever written out (tmpfs) a mapped file can come back to
the very mixture that was read, as often as it is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Generic, TypeVar

from holdfast.ports.filesystem import FILE_FLAGS, Filesystem
from holdfast.values.classes import NamedTuple

_READ_ATTEMPTS = 3
_A_MOMENT_NS = 1_000_000_000
_SLOWEST_WRITE_NS_PER_BYTE = 20
_QUICKLY_READ_BYTES = 1 << 20
"""Up to here a third read is no burden, and makes a mixture that comes back still less likely."""

T = TypeVar("T")


class NotARegularFile(OSError):
    """The path is not (or no longer) a regular file."""


class StableRead(NamedTuple, Generic[T]):
    """What was read, the status it belongs to, and whether it is one state of the file."""

    content: T
    status: os.stat_result
    stable: bool
    has_writer: bool
    xattrs: list[str]


def read_stably(
    fs: Filesystem,
    dir_fd: int,
    name: bytes,
    consume: Callable[[int, int], T],
    *,
    started_ns: int,
) -> StableRead[T]:
    """Read `name` with `consume(fd, size)`; after several doubtful attempts the last one counts.

    `started_ns` is when the scan began: a file that changed shortly before is looked at closely.
    """
    fd = fs.open(name, FILE_FLAGS, dir_fd=dir_fd)
    try:
        before = fs.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise NotARegularFile(f"{name!r} is not a regular file")
        content, after, stable, writer = _attempt(fs, fd, before, consume, started_ns)
        for _ in range(_READ_ATTEMPTS - 1):
            if stable:
                break
            fs.lseek(fd, 0, os.SEEK_SET)
            content, after, stable, writer = _attempt(fs, fd, fs.fstat(fd), consume, started_ns)
        return StableRead(content, after, stable, writer, fs.list_xattrs(fd))
    finally:
        fs.close(fd)


def _attempt(
    fs: Filesystem,
    fd: int,
    before: os.stat_result,
    consume: Callable[[int, int], T],
    started_ns: int,
) -> tuple[T, os.stat_result, bool, bool]:
    size = before.st_size
    writer = fs.is_open_for_writing(fd)
    slow = size * _SLOWEST_WRITE_NS_PER_BYTE
    recent = before.st_ctime_ns >= started_ns - _A_MOMENT_NS - slow
    more_reads = 1 if recent and writer is None else 0
    if writer and not recent:
        fs.expose_mapped_writes(fd)
        more_reads = 2 if size <= _QUICKLY_READ_BYTES else 1
    content = consume(fd, size)
    stable = not (recent and writer)
    for _ in range(more_reads):
        fs.lseek(fd, 0, os.SEEK_SET)
        stable = stable and consume(fd, size) == content
    after = fs.fstat(fd)
    return content, after, stable and _unchanged(before, after), writer is True


def _unchanged(before: os.stat_result, after: os.stat_result) -> bool:
    return (
        before.st_mtime_ns == after.st_mtime_ns
        and before.st_ctime_ns == after.st_ctime_ns
        and before.st_size == after.st_size
    )


def read_whole(fs: Filesystem, fd: int, size: int) -> bytes:
    """All bytes; a little more than `size` is asked for, so that growth is seen."""
    data = fs.read(fd, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while data:
        data = fs.read(fd, 1 << 20)
        parts.append(data)
    return b"".join(parts)
