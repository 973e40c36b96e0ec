"""The search index in a SQLite file of its own, which may be lost at any time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.adapters.local.derived_database import DerivedDatabase
from holdfast.adapters.local.search.ingest import read_cursors, write_batch
from holdfast.adapters.local.search.matches import find
from holdfast.adapters.local.search.parts import Effort, near_words
from holdfast.adapters.local.search.schema import FORMAT, OUR_MARK, SCHEMA
from holdfast.adapters.local.search.scoring import Scorer
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import SessionId
from holdfast.domain.search.query import SearchQuery
from holdfast.ports.search import Cursors, Findings, IndexBatch, IndexLost

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.layout import StoreLayout

_MOST_EFFORT_NS = 20_000_000
"""Of work, not of waiting: on a busy machine a search looks no less far."""


class SqliteSearchIndex(DerivedDatabase):
    """See `holdfast.ports.search.SearchIndex` for the contract of each member."""

    name = "search index"
    format = FORMAT
    our_mark = OUR_MARK
    lost = IndexLost

    def __init__(
        self,
        path: Path,
        lock: StoreLock,
        cipher: Cipher | None = None,
        *,
        clock_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        super().__init__(path, lock, cipher)
        self._clock_ns = clock_ns
        self._scorer = Scorer()

    def cursors(self) -> Cursors:
        return self._use(read_cursors)

    def take_in(self, batch: IndexBatch) -> None:
        self._write(lambda db: write_batch(db, batch))

    def find(self, query: SearchQuery, *, session_id: SessionId | None, limit: int) -> Findings:
        def ask(db: apsw.Connection) -> Findings:
            effort = Effort(self._clock_ns, _MOST_EFFORT_NS)
            return find(db, self._scorer, effort, query, session_id, limit)

        return self._use(ask)

    def near_words(self, word: str, limit: int) -> Sequence[str]:
        def look(db: apsw.Connection) -> Sequence[str]:
            return near_words(db, Effort(self._clock_ns, _MOST_EFFORT_NS), word, limit)

        return self._use(look)

    def _schema(self) -> str:
        return SCHEMA

    def _readied(self, db: apsw.Connection) -> apsw.Connection:
        db.register_fts5_function("worth", self._scorer)
        return super()._readied(db)


class ReadOnlySearchIndex(SqliteSearchIndex):
    """The index of a store that takes no writes: the store's own as it is, or a copy in memory.

        current as it is → asked there → behind, lost or never made → copied as far as it goes, or
        empty → what is missing is taken in there

    Guarantee: nothing is written to the disk, and what is found is what would be found after
    writing. Not guaranteed: speed; what is taken in is gone with the process, and the next one does
    it again.
    """

    _memory: apsw.Connection | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else can come: what is taken in is this process's own."""
        with self._lock:
            if self._memory is None:
                self._use_memory(copy=True)
            yield

    def begin_anew(self) -> None:
        with self._lock:
            self._use_memory(copy=False)

    def erase(self) -> None:
        """From the disk, which may take writes again by now; refused as long as it does not."""
        self.close()
        SqliteSearchIndex(self._path, self._file_lock, self._cipher).erase()

    def close(self) -> None:
        with self._lock:
            super().close()
            if self._memory is not None:
                self._memory.close()
            self._memory = None

    def _opened(self) -> apsw.Connection:
        if self._memory is None:
            with contextlib.suppress(HoldfastError):  # such as one that was never made
                return super()._opened()
            self._use_memory(copy=False)
        assert self._memory is not None
        return self._memory

    def _use_memory(self, *, copy: bool) -> None:
        memory = apsw.Connection(":memory:")
        if copy:
            try:
                with memory.backup("main", super()._opened(), "main") as copying:
                    copying.step()
            except (apsw.Error, HoldfastError, ValueError):
                memory.close()
                memory = apsw.Connection(":memory:")
        self.close()
        self._memory = self._readied(memory)

    def _make_way(self) -> None:
        self.begin_anew()


def open_search_index(layout: StoreLayout, cipher: Cipher | None) -> SqliteSearchIndex:
    """The index is not opened yet, nor made."""
    lock = StoreLock(layout.search_lock, SystemClock(), purpose="search")
    if lock.takes_writes():
        return SqliteSearchIndex(layout.search, lock, cipher)
    return ReadOnlySearchIndex(layout.search, lock, cipher)
