"""Errors of the store's own files, as opposed to files of the workspace.

    an fsync fails → noted in memory and in the file `suspect` → no save, restore or deletion
    → when the store is locked next, the data being synced is read back (`sync_readback`)
    → intact: the note is removed, and work continues

After a failed fsync the system may have dropped the bytes, and reports that only once: the next
fsync succeeds without them. So a repeated fsync is never trusted. The note survives the process, as
far as a failing disk allows. Without the note, this process behaves the same.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from holdfast.adapters.local.store_files import SyncFailed, sync, sync_directory
from holdfast.domain.errors import (
    HoldfastError,
    NoSpace,
    StoreDamaged,
    StoreMissing,
    StoreReadOnly,
    StoreSuspect,
    StoreUnwritable,
)
from holdfast.ports.filesystem import FILE_MODE, FULL_ERRORS, Filesystem, write_all

_TRIED_BYTES = 64 << 10
_FORBIDDEN = (errno.EACCES, errno.EPERM)
READ_ONLY_HINT = (
    "mount it writable, or copy the store to another disk (cp -a) and set HOLDFAST_HOME to the "
    "copy; viewing, previews and export still work"
)


MISSING_HINT = (
    "if it was moved or its disk is not mounted, restore that; if it was deleted, its checkpoints "
    "are gone: start a new one: holdfast init --new-store"
)


def is_read_only(path: Path) -> bool:
    """Whether the file system is mounted read-only."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


@contextmanager
def store_trouble(doing: str) -> Iterator[None]:
    """Translate an `OSError` of the store, so that it is not mistaken for a problem of the file
    being saved."""
    try:
        yield
    except OSError as error:
        raise translate_os_error(error, doing) from error


def store_vanished(directory: Path) -> StoreMissing:
    """The store was there when it was opened."""
    return StoreMissing(f"the store is missing: {directory}", hint=MISSING_HINT)


def translate_os_error(error: OSError, doing: str) -> HoldfastError:
    if error.errno in FULL_ERRORS:
        return NoSpace(
            f"no space left on the store's disk while {doing}", hint="free some disk space"
        )
    if error.errno in _FORBIDDEN:
        return StoreUnwritable(
            f"cannot write to the store while {doing}: {error.strerror}",
            hint="check its owner and permissions, or set HOLDFAST_HOME to another directory",
        )
    if error.errno == errno.EROFS:
        return StoreReadOnly(
            f"cannot write to the store while {doing}: its file system is read-only",
            hint=READ_ONLY_HINT,
        )
    if isinstance(error, SyncFailed):
        return StoreSuspect(
            f"fsync failed while {doing}: {error.strerror or error}",
            hint="check the disk and try again; the next command verifies the data and "
            "continues if it is intact",
        )
    return StoreDamaged(
        f"the store failed while {doing}: {error.strerror or error}",
        hint="check the disk, then run: holdfast check",
    )


def write_trouble(directory: Path) -> HoldfastError | None:
    """Why nothing can be written to a store directory now, found by writing a small file.
    Permissions and free space reveal less: there are quotas, and mounts below mounts."""
    path = directory / f".test.{os.getpid()}.new"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        try:
            left = b"test" * (_TRIED_BYTES // 4)  # zeros might take no space
            while left:
                left = left[os.write(fd, left) :]
        finally:
            os.close(fd)
            path.unlink(missing_ok=True)
    except OSError as error:
        return translate_os_error(error, "writing a test file")
    return None


_SYNC_FAILURES = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


def is_sync_failure(error: Exception) -> bool:
    return getattr(error, "extendedresult", None) in _SYNC_FAILURES


class SyncFailures:
    """The store files affected by a failed fsync, as paths below its directory."""

    def __init__(self, fs: Filesystem, path: Path) -> None:
        self._fs = fs
        self._path = path
        self._noted: set[str] = set()

    def note(self, subject: Path) -> None:
        """Never raises, because the caller has to report the failed fsync itself."""
        self._noted.add(subject.relative_to(self._path.parent).as_posix())
        data = json.dumps(sorted(self.subjects())).encode()
        with contextlib.suppress(OSError):
            self._write(data)

    def _write(self, data: bytes) -> None:
        """In place: even a torn or unsynced note tells others that there is one."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = self._fs.open(os.fsencode(self._path), flags, FILE_MODE)
        try:
            write_all(self._fs, fd, data)
            sync(self._fs, fd)
        finally:
            self._fs.close(fd)
        sync_directory(self._fs, os.fsencode(self._path.parent))

    def note_if_sync(self, error: Exception, subject: Path) -> None:
        if is_sync_failure(error):
            self.note(subject)

    @contextmanager
    def syncing(self, subject: Path) -> Iterator[None]:
        """Around every fsync of a store file or directory."""
        try:
            yield
        except SyncFailed:
            self.note(subject)
            raise

    def is_noted(self) -> bool:
        return bool(self._noted) or os.path.lexists(self._path)

    def subjects(self) -> set[str]:
        """The files noted here and by others; `.` means all, if that cannot be read."""
        try:
            written = json.loads(self._path.read_bytes())
            if not isinstance(written, list) or not all(isinstance(name, str) for name in written):
                written = ["."]
        except FileNotFoundError:
            written = []
        except (OSError, ValueError, RecursionError):
            written = ["."]
        return {*self._noted, *written}

    def refuse(self) -> None:
        """Nothing is added to a store in the operation whose fsync failed."""
        if self._noted:
            raise suspect(self._noted)

    def clear(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.unlink(os.fsencode(self._path))
        self._noted.clear()


def suspect(subjects: set[str]) -> StoreSuspect:
    named = ", ".join(sorted(subjects))
    return StoreSuspect(
        f"fsync of {named} failed; writes are blocked until it is verified",
        hint="check the disk and try again; the next command verifies the data and "
        "continues if it is intact",
    )
