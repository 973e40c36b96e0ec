"""A SQLite file with data derived from catalog and story, which may be lost at any time.

Opened on first use; saves do not use it. One process at a time writes, under a separate lock, so no
reader waits for a save. A file that is damaged, foreign or of another format is replaced by an
empty one, and `lost` is raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import apsw

from holdfast.adapters.local.sqlite_connection import connect, fold_log, translate
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import discard_derived, identity_of, unlink_database
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.domain.errors import StoreDamaged

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher

_PATIENCE_S = 30.0
_HAS_TABLES = "SELECT 1 FROM sqlite_schema LIMIT 1"
_TROUBLE = (apsw.BusyError, apsw.LockedError, apsw.FullError)
_DAMAGE = (apsw.Error, UnicodeDecodeError, ValueError, KeyError, TypeError, StoreDamaged)
"""Errors of a database whose bytes were changed."""

T = TypeVar("T")


class DerivedDatabase:
    """Its table `facts` has a row with the `format`. `our_mark` is text that only Holdfast's schema
    contains. `name` is used in messages."""

    name: ClassVar[str]
    format: ClassVar[str]
    our_mark: ClassVar[bytes]
    lost: ClassVar[type[Exception]]

    def __init__(self, path: Path, lock: StoreLock, cipher: Cipher | None = None) -> None:
        self._path = path
        self._file_lock = lock
        self._cipher = cipher
        self._lock = threading.RLock()
        self._db: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._file_lock.hold(_PATIENCE_S):
            yield

    def recreate(self) -> None:
        with self.exclusive(), self._lock:
            self.close()
            with store_trouble(f"rebuilding its {self.name}"):
                unlink_database(self._path)

    def erase(self) -> None:
        self.recreate()

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = self._file = None

    def _schema(self) -> str:
        """The statements that create its tables."""
        raise NotImplementedError

    def _use(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            with self._lock:
                return work(self._opened())
        except _TROUBLE as error:
            raise translate(error, self._path) from error
        except _DAMAGE as error:
            self._discard()
            raise self.lost(str(error)) from error

    def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        """All or nothing, under the lock."""

        def write(db: apsw.Connection) -> T:
            with db:
                done = work(db)
            fold_log(db, self._path)
            return done

        return self._use(write)

    def _opened(self) -> apsw.Connection:
        """The current file, because another process may have replaced it."""
        if self._db is not None and identity_of(self._path) == self._file:
            return self._db
        self.close()
        self._file = identity_of(self._path)
        self._db = connect(self._path, synchronous="NORMAL", cipher=self._cipher)
        self._file = identity_of(self._path)
        return self._prepared(self._db)

    def _prepared(self, db: apsw.Connection) -> apsw.Connection:
        if not db.execute(_HAS_TABLES).fetchall():
            self._make_tables(db)
        known = db.execute("SELECT value FROM facts WHERE key='format'").fetchall()
        if known != [(self.format,)]:
            raise ValueError(f"the {self.name} has format {known}")
        return db

    def _make_tables(self, db: apsw.Connection) -> None:
        """Safe if several processes do this at once."""
        db.execute("BEGIN IMMEDIATE")
        with db:
            if not db.execute(_HAS_TABLES).fetchall():
                db.execute(self._schema())
        db.execute("COMMIT")

    def _discard(self) -> None:
        """Replace it with an empty file, unless another process has already replaced it."""
        with self.exclusive(), self._lock:
            failed = self._file
            self.close()
            if identity_of(self._path) == failed:
                with store_trouble(f"deleting its {self.name}"):
                    discard_derived(self._path, self._path.stem, our_mark=self.our_mark)
