"""Reading and writing git's small files directly, because a process costs more than all of them.

Whatever lies there is not trusted: only regular files are read, never more than a limit, and
nothing waits for a named pipe.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20


class TooLarge(Exception):
    """A file that is larger than any that git writes for this purpose."""


def read_small(path: bytes, limit_bytes: int) -> bytes | None:
    """The content; None when there is no regular file. `TooLarge` beyond the limit."""
    try:
        fd = os.open(path, _READ_FLAGS)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > limit_bytes:
            raise TooLarge(os.fsdecode(path))
        return os.read(fd, limit_bytes)
    except IsADirectoryError:
        return None
    finally:
        os.close(fd)


@contextlib.contextmanager
def opened(path: bytes) -> Iterator[int | None]:
    """A handle on a regular file as it is now: git replaces files and never edits them."""
    try:
        fd = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        yield None
        return
    try:
        yield fd if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def blocks_of(fd: int) -> Iterator[bytes]:
    """The whole file, from its beginning."""
    at = 0
    while block := os.pread(fd, _BLOCK_BYTES, at):
        at += len(block)
        yield block


def read_whole(path: bytes) -> bytes:
    """A file that may be large; nothing when there is none."""
    with opened(path) as fd:
        return b"" if fd is None else b"".join(blocks_of(fd))


def replace_file(path: bytes, data: bytes, mode: int) -> None:
    """Put a durable file in place, whole or not at all."""
    temporary = path + b".holdfast"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    write_new(temporary, [data], mode)
    os.replace(temporary, path)


def write_new(path: bytes, pieces: Iterator[bytes] | list[bytes], mode: int) -> None:
    """A new durable file; `FileExistsError` when something is there."""
    fd = os.open(path, _WRITE_FLAGS, mode)
    try:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(fd, view) :]
        os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_directory(path: bytes) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
