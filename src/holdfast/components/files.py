"""Files by handle: directories entered name by name, no link followed, writes complete or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20


@contextmanager
def entered(
    fd: int, names: Iterable[bytes], make: Callable[[int, bytes], None] | None = None
) -> Iterator[int]:
    """A handle on a directory below `fd`, which is closed; `OSError` at a link. With `make`, which
    gets the parent's handle and a name, missing directories are created."""
    try:
        for name in names:
            if make is not None:
                make(fd, name)
            below = os.open(name, DIRECTORY_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def blocks_of(fd: int, most: int | None = None) -> Iterator[bytes]:
    """The content from its start, `most` bytes at most, because a file may grow meanwhile."""
    at = 0
    while most is None or at < most:
        block = os.pread(fd, _BLOCK_BYTES if most is None else min(_BLOCK_BYTES, most - at), at)
        if not block:
            return
        at += len(block)
        yield block


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@contextmanager
def new_file(name: bytes, mode: int, dir_fd: int | None = None) -> Iterator[int]:
    """A handle on a new file, which is synced and closed at the end; `FileExistsError` if the name
    exists."""
    fd = os.open(name, NEW_FLAGS, mode, dir_fd=dir_fd)
    try:
        yield fd
        os.fsync(fd)
    finally:
        os.close(fd)


def directory_identity(path: bytes) -> tuple[int, int] | None:
    """Equal for all paths that lead to one directory; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def change_stamp(status: os.stat_result) -> tuple[int, int, int]:
    """Changes if the content was changed."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def replacement(dir_fd: int, name: bytes, temporary: bytes) -> Iterator[None]:
    """The block creates `temporary`, which then replaces `name`, or is removed if the block fails.
    One left by an interrupted restore is removed first."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=dir_fd)
    try:
        yield
        os.replace(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=dir_fd)
        raise
