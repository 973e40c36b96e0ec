"""How every SQLite file of a store is opened.

With a write-ahead log. Automatic log checkpoints are off, so that the log is folded only under the
store's lock (`fold_log`), and never when a connection is closed.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import apsw

from holdfast.adapters.local.disk_sync import FULL_SYNC
from holdfast.adapters.local.store_errors import (
    READ_ONLY_HINT,
    SyncFailures,
    is_read_only,
    is_sync_failure,
    store_trouble,
    suspect,
)
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import Busy, NoSpace, StoreDamaged, StoreReadOnly
from holdfast.ports.filesystem import FILE_MODE

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher

DATABASE_TROUBLE = (apsw.Error, UnicodeDecodeError)
"""Errors of a database query; text with a damaged byte may be invalid."""

_FOLD_AT_BYTES = 512 << 10
"""A save writes some 30 pages of the index and 10 of the catalog. Folding takes as long as a small
save, so about one save in four folds. Logs count towards the store's size, so not much more."""
_BUSY_TIMEOUT_MS = 30_000
_SCRUB_TIMEOUT_MS = 5_000
_NEXT_TRY_S = 0.01


def connect(
    path: Path, *, synchronous: Literal["FULL", "NORMAL", "OFF"], cipher: Cipher | None = None
) -> apsw.Connection:
    """Open it, creating the file private to its owner before SQLite sees it; with a cipher,
    sealed."""
    layer = None
    with store_trouble(f"opening {path.name}"):
        if cipher is not None:
            from holdfast.adapters.local.encryption.sealed_database import (
                SealedFiles,
                create_sealed,
            )

            create_sealed(path, cipher)
            layer = SealedFiles(cipher)
        may_write = _may_write(path)
    connection = apsw.Connection(
        str(path),
        flags=(apsw.SQLITE_OPEN_READWRITE if may_write else apsw.SQLITE_OPEN_READONLY)
        | apsw.SQLITE_OPEN_NOMUTEX,
        vfs=None if layer is None else layer.name,
    )
    try:
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        if may_write:
            _log_ahead(connection)
        connection.execute(f"PRAGMA synchronous={synchronous}")
        if FULL_SYNC is not None:
            connection.execute("PRAGMA fullfsync=ON").fetchall()
        connection.execute("PRAGMA wal_autocheckpoint=0").fetchall()
        connection.execute("PRAGMA cell_size_check=ON")
        if layer is not None:
            connection.execute("PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _may_write(path: Path) -> bool:
    """Create the file if it is missing. An existing one on a file system that became read-only, as
    after a disk error, can still be read with its log."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except OSError as error:
        if error.errno != errno.EROFS or not path.exists():
            raise
        return False
    os.close(fd)
    return True


def _log_ahead(connection: apsw.Connection) -> None:
    """If several processes open a new file at once, some get a lock error immediately: SQLite does
    not wait where two could wait for each other."""
    pause = threading.Event()
    give_up_ns = SystemClock.monotonic_ns() + _BUSY_TIMEOUT_MS * 1_000_000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except apsw.BusyError:
            if SystemClock.monotonic_ns() >= give_up_ns:
                raise
            pause.wait(_NEXT_TRY_S)
        else:
            return


def fold_log(
    connection: apsw.Connection,
    path: Path,
    sync_failures: SyncFailures | None = None,
    *,
    at_bytes: int | None = None,
) -> None:
    """Move the log into the database if it has grown; only under the store's lock.

    Committed data is durable in the log, so a failure here does not concern the caller: the log
    stays, and the next call tries again. Only a failed fsync is noted.
    """
    try:
        log_bytes = os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return
    if log_bytes < (_FOLD_AT_BYTES if at_bytes is None else at_bytes):
        return
    # A reader in another process may keep part of the log in use; there is no wait for it.
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        return
    except apsw.IOError as error:
        if sync_failures is not None:
            sync_failures.note_if_sync(error, path)
    finally:
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)


def scrub(connection: apsw.Connection, path: Path) -> None:
    """Rebuild the file from its rows and empty its log, so that neither holds deleted data;
    durable. Only under the store's lock.

    Rows are copied in memory, because a temporary file would hold them outside the store.
    `BusyError` if another process reads, because the log cannot be emptied then.
    """
    before = connection.execute("PRAGMA synchronous").fetchall()[0][0]
    temporary = connection.execute("PRAGMA temp_store").fetchall()[0][0]
    connection.set_busy_timeout(_SCRUB_TIMEOUT_MS)
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA secure_delete=ON").fetchall()
        connection.execute("VACUUM")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.execute("PRAGMA secure_delete=OFF").fetchall()
        connection.execute(f"PRAGMA temp_store={temporary}")
        connection.execute(f"PRAGMA synchronous={before}")
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)


@contextmanager
def new_database(path: Path, cipher: Cipher | None) -> Iterator[apsw.Connection]:
    """A database that is one complete, synced file after the block."""
    db = connect(path, synchronous="FULL", cipher=cipher)
    try:
        yield db
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        db.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def translate(error: apsw.Error | UnicodeDecodeError, path: Path) -> Exception:
    """An SQLite error as a Holdfast error."""
    if isinstance(error, UnicodeDecodeError):
        return StoreDamaged(
            f"text in the store's {path.name} is damaged: {error}", hint="run: holdfast repair"
        )
    if is_sync_failure(error):
        return suspect({path.name})
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return StoreDamaged(
            f"the store's {path.name} is damaged: {error}",
            hint="run: holdfast check",
        )
    if isinstance(error, apsw.FullError):
        return NoSpace(f"no space left for the store's {path.name}", hint="free some disk space")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return _busy(path)
    if isinstance(error, apsw.ReadOnlyError) and is_read_only(path):
        return StoreReadOnly(f"the store's {path.name} is read-only", hint=READ_ONLY_HINT)
    if isinstance(error, apsw.CantOpenError) and is_read_only(path):
        # Without the log's files beside it, SQLite would have to create them first.
        return StoreReadOnly(
            f"the store's file system is read-only, and the log of {path.name} is missing",
            hint="mount it writable, or copy the store to another disk (cp -a) and set "
            "HOLDFAST_HOME to the copy",
        )
    if isinstance(error, apsw.IOError):
        return StoreDamaged(
            f"cannot read or write the store's {path.name}: {error}",
            hint="check the disk, then run: holdfast check",
        )
    if isinstance(error, (apsw.ConstraintError, apsw.MisuseError, apsw.ThreadingViolationError)):
        return error  # a bug in Holdfast, not a disk failure
    return StoreDamaged(f"the store's {path.name} is unusable: {error}", hint="run: holdfast check")


@contextmanager
def database_trouble(
    path: Path,
    sync_failures: SyncFailures | None = None,
    translate: Callable[[apsw.Error | UnicodeDecodeError, Path], Exception] = translate,
) -> Iterator[None]:
    """Translates SQLite errors to Holdfast errors, and notes a failed fsync."""
    try:
        yield
    except DATABASE_TROUBLE as error:
        if sync_failures is not None:
            sync_failures.note_if_sync(error, path)
        raise translate(error, path) from error


def _busy(path: Path) -> Busy:
    from holdfast.adapters.local.system import holder_of  # no save needs it

    holder = holder_of(path)
    if holder is None:
        return Busy(f"the store's {path.name} is in use", hint="try again")
    return Busy(
        f"process {holder} is using the store's {path.name}",
        hint=f"wait for it, or end it if it hangs: kill {holder}",
    )
