"""A file that appears under its name whole, durable and private, or not at all.

    .NAME.part beside it → fsync → renamed → directory synced

What a killed writer leaves is `.NAME.part`, which the next one for that name takes away.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.domain.errors import HoldfastError, NoSpace, Refused, UsageError
from holdfast.ports.filesystem import FILE_MODE, FULL_ERRORS, Filesystem

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def new_file(fs: Filesystem, path: Path, *, replace: bool) -> Iterator[int]:
    """A descriptor to write to; the file is there when the block ends without an error."""
    name = os.fsencode(path.name)
    if not name or name == b".." or path.is_dir():
        raise UsageError(f"{path} is a directory", hint="name a file")
    if not replace and os.path.lexists(path):
        raise already_there(path)
    try:
        directory = fs.open(os.fsencode(path.parent), _DIRECTORY_FLAGS)
    except OSError as error:
        raise _trouble(path, error) from None
    try:
        yield from _written(fs, directory, name, path, replace=replace)
    finally:
        with contextlib.suppress(OSError):  # it was only read and synced
            fs.close(directory)


def _written(
    fs: Filesystem, directory: int, name: bytes, path: Path, *, replace: bool
) -> Iterator[int]:
    part = b"." + name + b".part"
    try:
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(part, dir_fd=directory)
        fd = fs.open(part, _NEW_FLAGS, FILE_MODE, dir_fd=directory)
    except OSError as error:
        raise _trouble(path, error) from None
    try:
        try:
            yield fd
            fs.fsync(fd)
        finally:
            fs.close(fd)
        if replace:
            fs.rename(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        else:
            fs.rename_new(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        fs.fsync(directory)
    except BaseException as error:
        with contextlib.suppress(OSError):
            fs.unlink(part, dir_fd=directory)
        if isinstance(error, FileExistsError):
            raise already_there(path) from None
        if isinstance(error, OSError):
            raise _trouble(path, error) from error
        raise


def already_there(path: Path) -> Refused:
    return Refused(f"{path} is there already", hint="name another file, or replace it with --force")


def _trouble(path: Path, error: OSError) -> HoldfastError:
    if error.errno in FULL_ERRORS:
        return NoSpace(f"no space left for {path}", hint="free some disk space, or name another")
    return Refused(
        f"{path} cannot be written: {error.strerror}", hint="check that its directory is yours"
    )
