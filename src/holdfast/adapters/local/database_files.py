"""Copying and comparing files of a SQLite database by their bytes."""

from __future__ import annotations

import contextlib
import os

from blake3 import blake3

from holdfast.domain.ids import Digest
from holdfast.domain.sqlite_files import without_bookkeeping

OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20


def open_if_there(name: bytes, dir_fd: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | OPEN_FLAGS, dir_fd=dir_fd)
    except FileNotFoundError:
        return None


def digest_of_handle(fd: int) -> Digest:
    hasher = blake3()
    position = 0
    while block := os.pread(fd, _BLOCK_BYTES, position):
        hasher.update(block)
        position += len(block)
    return Digest(hasher.digest())


def copy_to_new(source: int, name: bytes, area: int) -> int:
    """A handle of the copy, which replaces what an earlier attempt left by that name."""
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
    """Whether the first is a database of `size` bytes without a log that is the same as the second
    but for what SQLite counts in it."""
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
