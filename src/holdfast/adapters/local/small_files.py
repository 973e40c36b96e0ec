"""The small files of a store: replaced whole, read without trust, in a place of the user's own.

When a small file is replaced, a reader, or a crash, sees the old content or the new one.
What stands under a name of ours may have been put there by somebody else: a pipe that never
answers, a link that leads away, a directory. Such a thing is an error, not something to wait for.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from holdfast.domain.errors import WorkspaceRefused
from holdfast.ports.filesystem import FILE_MODE, Filesystem, write_all

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITABLE_BY_OTHERS = 0o022
_ROOT = 0


def read_own_file(path: Path, most_bytes: int = -1) -> bytes:
    """The bytes of a regular file, all or the first ones; `OSError` for anything else."""
    fd = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(fd)


def require_own_place(home: Path) -> None:
    """Refuse a directory for stores that somebody else owns, or can exchange for another.

    Root is nobody else. One that is ours and open to others is closed: nothing in it needs them.
    """
    for path in (home, home / "stores", home / "by-path"):
        try:
            status = path.stat()
            owners = {status.st_uid, path.lstat().st_uid}
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise WorkspaceRefused(
                f"the store's directory {path} cannot be looked at: {error.strerror}",
                hint="set HOLDFAST_HOME to a directory of your own",
            ) from None
        foreign = owners - {os.geteuid(), _ROOT}
        if foreign:
            raise WorkspaceRefused(
                f"the store's directory {path} belongs to another user (uid {foreign.pop()})",
                hint="set HOLDFAST_HOME to a directory of your own",
            )
        _close_to_others(path, status)


def _close_to_others(path: Path, status: os.stat_result) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _WRITABLE_BY_OTHERS or mode & stat.S_ISVTX:
        return
    if status.st_uid != os.geteuid():
        raise WorkspaceRefused(
            f"the store's directory {path} can be changed by every user of this machine",
            hint="set HOLDFAST_HOME to a directory of your own",
        )
    path.chmod(mode & ~_WRITABLE_BY_OTHERS)


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
