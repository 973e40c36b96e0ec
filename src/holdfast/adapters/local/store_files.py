"""Store files: replaced atomically, read without trust, in a private place.

When a small file is replaced, a reader, or a crash, sees the old content or the new one. Another
user may have put something under a Holdfast name: a pipe that never answers, a link that leads
away, a directory. That is an error, not something to wait for.

**Quarantine.** A damaged file is moved to store/set-aside/<occasion>/<file>. A file that the store
cannot use may still be the user's only copy, for example if it was swapped with another. It is
renamed with its log, never unlinked, and counts towards the budget until the user removes it. Only
a derived database that certainly belongs to Holdfast is deleted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.domain.errors import WorkspaceRefused
from holdfast.ports.filesystem import DIRECTORY_MODE, FILE_MODE, Filesystem, write_all

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
    """Refuse a directory for stores that another user owns or can replace.

    Root does not count as another user. If the user's own directory is writable by others, that
    permission is removed, because nothing in it needs it.
    """
    for path in (home, home / "stores", home / "by-path"):
        try:
            status = path.stat()
            owners = {status.st_uid, path.lstat().st_uid}
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise WorkspaceRefused(
                f"cannot access the store's directory {path}: {error.strerror}",
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
            f"every user of this machine can change the store's directory {path}",
            hint="set HOLDFAST_HOME to a directory of your own",
        )
    path.chmod(mode & ~_WRITABLE_BY_OTHERS)


class SyncFailed(OSError):
    """The written data may be lost even if a later fsync succeeds."""


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


def fsync_directory(path: Path) -> None:
    """For callers without a file system port."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_to_disk(fd)
    finally:
        os.close(fd)


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
    """Like `atomic_write`, in an open directory, so that nothing can redirect it.

    One writer at a time per name: a killed writer's temporary file is removed first.
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


SET_ASIDE = "set-aside"
_SQLITE_SUFFIXES = ("", "-wal", "-shm")
_BEGINNING_BYTES = 32768
_TABLES_AT = slice(103, 105)
"""The cell count of an SQLite file's first page: the number of its tables and indexes."""


def quarantine(store: Path, occasion: str, *paths: Path) -> Path:
    """Rename each existing path, with its SQLite companions; returns their new directory."""
    directory = quarantine_directory(store, occasion)
    for path in paths:
        for suffix in _SQLITE_SUFFIXES:
            source = path.with_name(path.name + suffix)
            if source.exists() or source.is_symlink():
                source.rename(directory / source.name)
    for changed in (directory, *{path.parent for path in paths}):
        fsync_directory(changed)
    return directory


def quarantine_directory(store: Path, occasion: str) -> Path:
    """A new directory named after the occasion, numbered if that exists."""
    above = store / SET_ASIDE
    above.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    number = 1
    while True:
        directory = above / (occasion if number == 1 else f"{occasion}-{number}")
        try:
            directory.mkdir(mode=DIRECTORY_MODE)
            break
        except FileExistsError:
            number += 1
    fsync_directory(above)
    fsync_directory(store)
    return directory


def identity_of(path: Path) -> tuple[int, int] | None:
    """Distinguishes a file from another one put in its place."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def discard_derived(path: Path, occasion: str, *, our_mark: bytes) -> None:
    """Make room for a new derived database. `our_mark` is text that only Holdfast's schema
    contains."""
    if not _is_ours(path, our_mark):
        quarantine(path.parent, occasion, path)
    unlink_database(path)


def unlink_database(path: Path) -> None:
    """With its log. Unlike an unusable file, one that was in use certainly belongs to Holdfast."""
    for suffix in _SQLITE_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


def copy_database(source: Path, target: Path) -> None:
    """With its log, if they exist."""
    import shutil  # late: it imports half a dozen modules, and saves do not need it

    for suffix in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"{source}{suffix}", f"{target}{suffix}")


def _is_ours(path: Path, our_mark: bytes) -> bool:
    beginning = {}
    try:
        for suffix in ("", "-wal"):  # for a new file, everything may still be in the log
            with contextlib.suppress(FileNotFoundError):
                found = path.with_name(path.name + suffix)
                beginning[suffix] = read_own_file(found, _BEGINNING_BYTES)
    except OSError:
        return False  # a pipe or a link, which Holdfast did not create
    database = beginning.get("", b"")
    holds_nothing = not database.strip(b"\0") or not any(database[_TABLES_AT])
    return holds_nothing or any(our_mark in found for found in beginning.values())
