"""Reading a file that others may be writing.

    open without following links → fstat → is there a writer? → read → fstat again
    → nothing changed and no program was writing: done; else again; else report it as unstable

Unchanged times alone prove nothing: one long write sets the time when it begins, and may still be
copying after both fstat calls. So for a recently changed file, the system is asked whether a
program has it open for writing. If that is unknown, two reads must agree.

Two reads must also agree for a file that has a writer but no recent change. Of the writes through a
mapping, only the first one to a page changes the times, until the system writes the page out. So
the pages are written out before the reads, and the next scan reads the file again.

Guarantee: content reported as stable is one state of the file. Special files are never opened for
reading. Not guaranteed:

- With coarse file times, an open, a write and a close may hide in the tick of the previous change
  while the file is read. The next scan reads such a file again.
- Without write-out (tmpfs), a mapped file can return to the same mixture on every read.
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
"""Up to this size, a third read costs little and makes a repeated mixture even less likely."""

T = TypeVar("T")


class NotARegularFile(OSError):
    """The path is not (or no longer) a regular file."""


class StableRead(NamedTuple, Generic[T]):
    """The content, the status that belongs to it, and whether it is one state of the file."""

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
    """Read `name` with `consume(fd, size)`. After several unstable attempts, the last one counts.

    `started_ns` is when the scan began: a file that changed shortly before is checked closely.
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
    """All bytes; asks for a little more than `size`, to notice growth."""
    data = fs.read(fd, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while data:
        data = fs.read(fd, 1 << 20)
        parts.append(data)
    return b"".join(parts)
