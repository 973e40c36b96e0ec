"""Trouble with the store told apart from trouble with a file of the workspace."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.domain.errors import (
    HoldfastError,
    NoSpace,
    StoreDamaged,
    StoreSuspect,
    StoreUnwritable,
)
from holdfast.store.atomic_write import SyncFailed

_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
