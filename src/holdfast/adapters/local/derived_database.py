"""A SQLite file that only repeats what catalog and story hold, and may be lost at any time.

Opened on first use: saving knows nothing of it. One process at a time writes, with a lock of its
own, so no reader waits for a save. A file that is damaged, of another format, or foreign is
replaced by an empty one, and `lost` notifies its user.
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
"""What a database says whose bytes were changed."""

T = TypeVar("T")


class DerivedDatabase:
    """Its tables have `facts`, a row of which holds the `format`; `our_mark` is part of the schema
    of none but ours. `name` is the part of a sentence that says what it is."""

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
        """The statements that make its tables."""
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
        """All of it or nothing, under the lock."""

        def write(db: apsw.Connection) -> T:
            with db:
                done = work(db)
            fold_log(db, self._path)
            return done

        return self._use(write)

    def _opened(self) -> apsw.Connection:
        """The current file: another process may have exchanged it."""
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
        """Of several who come at once, one makes them."""
        db.execute("BEGIN IMMEDIATE")
        with db:
            if not db.execute(_HAS_TABLES).fetchall():
                db.execute(self._schema())
        db.execute("COMMIT")

    def _discard(self) -> None:
        """For an empty file; one that another process has put there meanwhile stays."""
        with self.exclusive(), self._lock:
            failed = self._file
            self.close()
            if identity_of(self._path) == failed:
                with store_trouble(f"deleting its {self.name}"):
                    discard_derived(self._path, self._path.stem, our_mark=self.our_mark)
