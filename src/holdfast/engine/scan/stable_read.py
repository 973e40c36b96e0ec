"""Reading a file that others may be writing.

    open without following links → fstat → read → fstat again → equal: done, else again, else say so

Guarantee: content reported as stable was not modified between the two fstats by any writer that
goes through the kernel's file calls. Special files are never opened for reading.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from holdfast.ports.filesystem import Filesystem

_ATTEMPTS = 3
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

T = TypeVar("T")


class NotARegularFile(OSError):
    """What the name stands for is not (or no longer) a regular file."""


@dataclass(frozen=True, slots=True)
class StableRead(Generic[T]):
    """What was read, the status it belongs to, and whether nobody wrote meanwhile."""

    content: T
    status: os.stat_result
    stable: bool
    xattrs: tuple[str, ...]


def read_stably(
    fs: Filesystem, dir_fd: int, name: bytes, consume: Callable[[int, int], T]
) -> StableRead[T]:
    """Read `name` with `consume(fd, size)`; after several changed attempts the last one counts."""
    fd = fs.open(name, _FLAGS, dir_fd=dir_fd)
    try:
        before = fs.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise NotARegularFile(f"{name!r} is not a regular file")
        content, after = consume(fd, before.st_size), fs.fstat(fd)
        for _ in range(_ATTEMPTS - 1):
            if _unchanged(before, after):
                break
            before = after
            fs.lseek(fd, 0, os.SEEK_SET)
            content, after = consume(fd, before.st_size), fs.fstat(fd)
        return StableRead(content, after, _unchanged(before, after), tuple(fs.list_xattrs(fd)))
    finally:
        fs.close(fd)


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
