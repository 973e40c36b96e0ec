"""The search index, in a separate SQLite file that may be lost at any time.

    expression → the newest 300 matching checkpoints and 300 messages, and checkpoints with a
    matching name or tag → scores → messages get the checkpoint they belong to → best first

The cost does not grow with the frequency of a word, because only the newest matches are ranked. If
there are fewer, older rows are searched within the effort for one search.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.adapters.local.derived_database import DerivedDatabase
from holdfast.adapters.local.search.expressions import (
    FORMAT,
    OUR_MARK,
    SCHEMA,
    Place,
    about_checkpoints,
    about_messages,
)
from holdfast.adapters.local.search.ingest import read_cursors, write_batch
from holdfast.adapters.local.search.partitions import (
    Candidate,
    Effort,
    Question,
    Scorer,
    near_words,
    rarities,
    rows,
)
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.search.hits import FIELD_WEIGHTS, Field
from holdfast.domain.search.query import (
    SearchQuery,
    State,
)
from holdfast.ports.search import Cursors, Findings, Found, IndexBatch, IndexLost

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.layout import StoreLayout

_MOST_EFFORT_NS = 20_000_000
"""CPU time, not waiting, so that a search covers as much on a busy machine."""
_MOST_EFFORT_FOR_ONE_NS = 2_000_000


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

    def ingest(self, batch: IndexBatch) -> None:
        self._write(lambda db: write_batch(db, batch))

    def find(self, query: SearchQuery, *, session_id: SessionId | None, limit: int) -> Findings:
        def ask(db: apsw.Connection) -> Findings:
            effort = Effort(self._clock_ns, _MOST_EFFORT_NS)
            return find(db, self._scorer, effort, query, session_id, limit)

        return self._use(ask)

    def has(self, query: SearchQuery, *, session_id: SessionId | None) -> bool:
        def ask(db: apsw.Connection) -> bool:
            effort = Effort(self._clock_ns, _MOST_EFFORT_FOR_ONE_NS)
            return has(db, self._scorer, effort, query, session_id)

        return self._use(ask)

    def near_words(self, word: str, limit: int) -> Sequence[str]:
        def look(db: apsw.Connection) -> Sequence[str]:
            return near_words(db, Effort(self._clock_ns, _MOST_EFFORT_NS), word, limit)

        return self._use(look)

    def _schema(self) -> str:
        return SCHEMA

    def _prepared(self, db: apsw.Connection) -> apsw.Connection:
        db.register_fts5_function("worth", self._scorer)
        return super()._prepared(db)


class ReadOnlySearchIndex(SqliteSearchIndex):
    """The search index of a store that cannot be written: the store's own if current, or a copy in
    memory.

        current → used directly → outdated, lost or missing → copied as far as possible, or empty →
        missing entries are added to the copy

    Guarantee: nothing is written to the disk, and results are the same as after writing. Not
    guaranteed: speed; the additions end with the process, and the next one repeats them.
    """

    _memory: apsw.Connection | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """There are no other processes: the additions belong to this one."""
        with self._lock:
            if self._memory is None:
                self._use_memory(copy=True)
            yield

    def recreate(self) -> None:
        with self._lock:
            self._use_memory(copy=False)

    def erase(self) -> None:
        """From the disk, which may be writable again by now; otherwise it fails."""
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
            with contextlib.suppress(HoldfastError):  # such as one that was never created
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
        self._memory = self._prepared(memory)

    def _discard(self) -> None:
        self.recreate()


def open_search_index(layout: StoreLayout, cipher: Cipher | None) -> SqliteSearchIndex:
    """The index is neither opened nor created yet."""
    lock = StoreLock(layout.search_lock, SystemClock(), purpose="search")
    if lock.takes_writes():
        return SqliteSearchIndex(layout.search, lock, cipher)
    return ReadOnlySearchIndex(layout.search, lock, cipher)


RANKED_AT_MOST = 300
_MOST_MESSAGES_EACH = 3
_LOOKED_AT = 3

_SAID_AT = """
SELECT id FROM kept WHERE session=? AND message_index IS NOT NULL AND message_index<=?
ORDER BY message_index DESC, sequence DESC LIMIT 1
"""
_SAID_BEFORE = """
SELECT id FROM kept WHERE session=? AND message_index IS NOT NULL AND message_index>?
ORDER BY message_index, sequence LIMIT 1
"""


def find(
    db: apsw.Connection,
    scorer: Scorer,
    effort: Effort,
    query: SearchQuery,
    session_id: SessionId | None,
    limit: int,
) -> Findings:
    """Best first, for at most `limit` moments."""
    sessions = _sessions(db, query, session_id)
    if query.is_wordless or sessions == []:
        return Findings(())
    most = max(RANKED_AT_MOST, limit)
    question = Question(db, scorer, effort, query, rarities(db, query), most)
    found: dict[tuple[bool, int], Candidate] = {}
    for candidate in _candidates(question, sessions):
        found.setdefault((candidate.position is None, candidate.sequence), candidate)
    best = sorted(found.values(), key=lambda c: (-c.score, -c.at_ns, -c.sequence))
    names: dict[int, SessionId] = dict(rows(db, "SELECT number, id FROM sessions"))
    return Findings(list(_moments(db, best, names, limit)), effort.back_to_ns)


def has(
    db: apsw.Connection,
    scorer: Scorer,
    effort: Effort,
    query: SearchQuery,
    session_id: SessionId | None,
) -> bool:
    sessions = _sessions(db, query, session_id)
    if query.is_wordless or sessions == []:
        return False
    question = Question(db, scorer, effort, query, [1.0] * len(query.terms), most=1)
    return any(True for _ in _candidates(question, sessions))


def _candidates(question: Question, sessions: Sequence[int] | None) -> Iterator[Candidate]:
    query = question.query
    if State.MESSAGE not in query.states:
        newest = question.ask(Place.KEPT, about_checkpoints(query, sessions))
        yield from newest
        if query.terms and len(newest) == question.most:
            # A name is worth finding, however old it is.
            titles = about_checkpoints(query, sessions, titles=True)
            yield from question.ask(Place.KEPT, titles, mark_weight=FIELD_WEIGHTS[Field.NAME])
    if not query.about_checkpoints and (query.terms or State.MESSAGE in query.states):
        yield from question.ask(Place.SAID, about_messages(query, sessions))


def _sessions(
    db: apsw.Connection, query: SearchQuery, session_id: SessionId | None
) -> list[int] | None:
    """The numbers of the sessions to search; None for all. A filter never adds sessions."""
    if session_id is None and not query.sessions:
        return None
    allowed = set(query.sessions or (session_id,))
    if session_id is not None:
        allowed &= {session_id}
    marks = ",".join("?" * len(allowed))
    found = rows(db, f"SELECT number FROM sessions WHERE id IN ({marks})", *allowed)
    return [number for (number,) in found]


def _moments(
    db: apsw.Connection, best: Sequence[Candidate], names: Mapping[int, SessionId], limit: int
) -> Iterator[Found]:
    """Results for `limit` moments, with at most a few messages of each."""
    seen: dict[tuple[int, object], int] = {}
    for number, candidate in enumerate(best):
        if number >= _LOOKED_AT * limit and len(seen) >= limit:
            return
        checkpoint_id = candidate.checkpoint_id
        if checkpoint_id is None and candidate.position is not None:
            checkpoint_id = _said_at(db, candidate.session, candidate.position)
        moment = (candidate.session, checkpoint_id or candidate.sequence)
        if moment not in seen and len(seen) >= limit:
            continue
        seen[moment] = seen.get(moment, 0) + (candidate.position is not None)
        if seen[moment] > _MOST_MESSAGES_EACH and candidate.position is not None:
            continue
        yield Found(
            names[candidate.session],
            checkpoint_id,
            candidate.position,
            candidate.at_ns,
            candidate.score,
            candidate.fields,
        )


def _said_at(db: apsw.Connection, session: int, position: int) -> CheckpointId | None:
    """The newest checkpoint before or at a message, else the first one after it."""
    for statement in (_SAID_AT, _SAID_BEFORE):
        for (identifier,) in rows(db, statement, session, position):
            return CheckpointId(identifier)
    return None
