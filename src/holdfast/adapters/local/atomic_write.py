"""Replacing a small file so that a reader, or a crash, sees the old content or the new one."""

from __future__ import annotations

import contextlib
import os

from holdfast.ports.filesystem import FILE_MODE, Filesystem, write_all


class SyncFailed(OSError):
    """What was written may be lost although a later sync succeeds: nothing is to be assumed."""


def sync(fs: Filesystem, fd: int) -> None:
    try:
        fs.fsync(fd)
    except OSError as error:
        raise SyncFailed(error.errno, error.strerror) from error


def sync_directory(fs: Filesystem, path: bytes) -> None:
    fd = fs.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fs, fd)
    finally:
        fs.close(fd)


def atomic_write(fs: Filesystem, path: bytes, data: bytes) -> None:
    """Durable when it returns: content, name and the removal of the old content."""
    directory, _, name = path.rpartition(b"/")
    fd = fs.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        atomic_write_in(fs, fd, name, data)
    finally:
        fs.close(fd)


def atomic_write_in(
    fs: Filesystem, directory_fd: int, name: bytes, data: bytes, *, mode: int = FILE_MODE
) -> None:
    """Like `atomic_write`, in a directory that is open: nothing leads elsewhere meanwhile.

    One writer at a time for a name: the temporary file of a killed one is taken away first.
    """
    temporary = b"." + name + b".new"
    with contextlib.suppress(FileNotFoundError):
        fs.unlink(temporary, dir_fd=directory_fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = fs.open(temporary, flags, mode, dir_fd=directory_fd)
    try:
        try:
            write_all(fs, fd, data)
            sync(fs, fd)
        finally:
            fs.close(fd)
        fs.rename(temporary, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
    except OSError:
        with contextlib.suppress(OSError):
            fs.unlink(temporary, dir_fd=directory_fd)
        raise
    sync(fs, directory_fd)
