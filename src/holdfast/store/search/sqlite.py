"""The search index in a SQLite file of its own, which may be lost at any time.

Opened when somebody first searches: saving knows nothing of it. One process at a time writes, with
a lock of its own, so that a search never waits for a save. A file that is damaged, of another
format, or not ours makes way for an empty one, and whoever used it is told with `IndexLost`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.search_query import SearchQuery
from holdfast.ports.search import Cursors, Findings, IndexBatch, IndexLost
from holdfast.store.derived_files import discard, unlink
from holdfast.store.faults import store_trouble
from holdfast.store.search.asking import Effort
from holdfast.store.search.reading import find
from holdfast.store.search.schema import FORMAT, OUR_MARK, SCHEMA
from holdfast.store.search.scoring import Scorer
from holdfast.store.search.vocabulary import near_words
from holdfast.store.search.writing import read_cursors, write_batch
from holdfast.store.setting_aside import identity_of
from holdfast.store.sqlite_connection import connect, fold_log, translate
from holdfast.store.store_lock import StoreLock
from holdfast.store.system import SystemClock

if TYPE_CHECKING:
    from holdfast.store.encryption.cipher import Cipher
    from holdfast.store.layout import StoreLayout

_PATIENCE_S = 30.0
_MOST_EFFORT_NS = 20_000_000
"""Of work, not of waiting: on a busy machine a search looks no less far."""
_HAS_TABLES = "SELECT 1 FROM sqlite_schema LIMIT 1"
_TROUBLE = (apsw.BusyError, apsw.LockedError, apsw.FullError)
_MAKES_NO_SENSE = (apsw.Error, UnicodeDecodeError, ValueError, KeyError, TypeError, StoreDamaged)
"""What a database says whose bytes were changed."""

T = TypeVar("T")


class SqliteSearchIndex:
    """See `holdfast.ports.search.SearchIndex` for the contract of each member."""

    def __init__(
        self,
        path: Path,
        lock: StoreLock,
        cipher: Cipher | None = None,
        *,
        clock_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._path = path
        self._file_lock = lock
        self._cipher = cipher
        self._clock_ns = clock_ns
        self._lock = threading.RLock()
        self._scorer = Scorer()
        self._db: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._file_lock.hold(_PATIENCE_S):
            yield

    def cursors(self) -> Cursors:
        return self._use(read_cursors)

    def take_in(self, batch: IndexBatch) -> None:
        def write(db: apsw.Connection) -> None:
            with db:
                write_batch(db, batch)
            fold_log(db, self._path)

        self._use(write)

    def begin_anew(self) -> None:
        with self.exclusive(), self._lock:
            self.close()
            with store_trouble("beginning its search index anew"):
                unlink(self._path)

    def find(self, query: SearchQuery, *, session_id: SessionId | None, limit: int) -> Findings:
        def ask(db: apsw.Connection) -> Findings:
            effort = Effort(self._clock_ns, _MOST_EFFORT_NS)
            return find(db, self._scorer, effort, query, session_id, limit)

        return self._use(ask)

    def near_words(self, word: str, limit: int) -> Sequence[str]:
        def look(db: apsw.Connection) -> Sequence[str]:
            return near_words(db, Effort(self._clock_ns, _MOST_EFFORT_NS), word, limit)

        return self._use(look)

    def erase(self) -> None:
        self.begin_anew()

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = self._file = None

    def _use(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            with self._lock:
                return work(self._opened())
        except _TROUBLE as error:
            raise translate(error, self._path) from error
        except _MAKES_NO_SENSE as error:
            self._make_way()
            raise IndexLost(str(error)) from error

    def _opened(self) -> apsw.Connection:
        """The file that stands there now: another process may have exchanged it."""
        if self._db is not None and identity_of(self._path) == self._file:
            return self._db
        self.close()
        self._file = identity_of(self._path)
        self._db = connect(self._path, synchronous="NORMAL", cipher=self._cipher)
        self._file = identity_of(self._path)
        return self._readied(self._db)

    def _readied(self, db: apsw.Connection) -> apsw.Connection:
        db.register_fts5_function("worth", self._scorer)
        if not db.execute(_HAS_TABLES).fetchall():
            self._make_tables(db)
        known = db.execute("SELECT value FROM facts WHERE key='format'").fetchall()
        if known != [(FORMAT,)]:
            raise ValueError(f"the search index has format {known}")
        return db

    @staticmethod
    def _make_tables(db: apsw.Connection) -> None:
        """Of several who come at once, one makes them."""
        db.execute("BEGIN IMMEDIATE")
        with db:
            if not db.execute(_HAS_TABLES).fetchall():
                db.execute(SCHEMA)
        db.execute("COMMIT")

    def _make_way(self) -> None:
        """For an empty file; one that somebody else has put there meanwhile stays."""
        with self.exclusive(), self._lock:
            failed = self._file
            self.close()
            if identity_of(self._path) == failed:
                with store_trouble("making room for its search index"):
                    discard(self._path, "search", our_mark=OUR_MARK)


def open_search_index(layout: StoreLayout, cipher: Cipher | None) -> SqliteSearchIndex:
    """The index is not opened yet, nor made."""
    lock = StoreLock(layout.search_lock, SystemClock(), purpose="search")
    if lock.takes_writes():
        return SqliteSearchIndex(layout.search, lock, cipher)
    from holdfast.store.search.unwritable import UnwritableSearchIndex  # hardly ever needed

    return UnwritableSearchIndex(layout.search, lock, cipher)
