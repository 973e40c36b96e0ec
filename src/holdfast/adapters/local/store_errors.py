"""Trouble with the store told apart from trouble with a file of the workspace."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.adapters.local.small_files import SyncFailed
from holdfast.domain.errors import (
    HoldfastError,
    NoSpace,
    StoreDamaged,
    StoreReadOnly,
    StoreSuspect,
    StoreUnwritable,
)
from holdfast.ports.filesystem import FULL_ERRORS

_FORBIDDEN = (errno.EACCES, errno.EPERM)
READ_ONLY_HINT = (
    "mount it writable, or copy the store to another disk (cp -a) and set HOLDFAST_HOME to the "
    "copy; what only looks, previews included, and export need no writing"
)


def is_read_only(path: Path) -> bool:
    """Whether the file system takes no writes, whoever asks for them."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


@contextmanager
def store_trouble(doing: str) -> Iterator[None]:
    """Turn an `OSError` of the store into one of the family, so that nobody takes it for a
    property of the file that was being saved."""
    try:
        yield
    except OSError as error:
        raise translate_os_error(error, doing) from error


def translate_os_error(error: OSError, doing: str) -> HoldfastError:
    if error.errno in FULL_ERRORS:
        return NoSpace(
            f"no space left on the disk of the store while {doing}", hint="free some disk space"
        )
    if error.errno in _FORBIDDEN:
        return StoreUnwritable(
            f"the store cannot be written while {doing}: {error.strerror}",
            hint="check its owner and permissions, or set HOLDFAST_HOME to another directory",
        )
    if error.errno == errno.EROFS:
        return StoreReadOnly(
            f"the store cannot be written while {doing}: its file system is read-only",
            hint=READ_ONLY_HINT,
        )
    if isinstance(error, SyncFailed):
        return StoreSuspect(
            f"the disk did not take in what was written while {doing}: {error.strerror or error}",
            hint="check the disk and try again: the next command reads it back, and goes on if it "
            "is whole",
        )
    return StoreDamaged(
        f"the store failed while {doing}: {error.strerror or error}",
        hint="check the disk, then run: holdfast check",
    )
