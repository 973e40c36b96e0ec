"""The search index in a SQLite file of its own, which may be lost at any time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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


def open_search_index(layout: StoreLayout, cipher: Cipher | None) -> SqliteSearchIndex:
    """The index is not opened yet, nor made."""
    lock = StoreLock(layout.search_lock, SystemClock(), purpose="search")
    if lock.takes_writes():
        return SqliteSearchIndex(layout.search, lock, cipher)
    from holdfast.adapters.local.search.read_only import (
        ReadOnlySearchIndex,  # hardly ever needed
    )

    return ReadOnlySearchIndex(layout.search, lock, cipher)
