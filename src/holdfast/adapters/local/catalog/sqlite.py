"""The catalog in one SQLite file: the embedded default.

A commit is durable when it returns (`synchronous=FULL` fsyncs the log). The caller holds the
store's lock around every transaction; readers do not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from holdfast.adapters.local.catalog.migrations import (
    MIGRATIONS,
    applied_migrations,
    migrate,
    require_known,
)
from holdfast.adapters.local.catalog.rows import (
    CHECKPOINT_COLUMNS,
    MILESTONE,
    OPERATION_COLUMNS,
    OUTLINE,
    SESSION_COLUMNS,
    checkpoint_from_row,
    milestone_from_row,
    operation_from_row,
    outline_reader,
    session_from_row,
    unlogged_changes,
)
from holdfast.adapters.local.catalog.transaction import SqliteTransaction
from holdfast.adapters.local.commit_notes import NotedChanges, NotedOperation
from holdfast.adapters.local.sqlite_connection import (
    DATABASE_TROUBLE,
    connect,
    database_trouble,
    fold_log,
    scrub,
    translate,
)
from holdfast.adapters.local.store_errors import SyncFailures
from holdfast.domain.checkpoints import RECORD_KINDS, Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.sessions import Session
from holdfast.ports.catalog import CatalogCounts

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.domain.checkpoints import Milestone
    from holdfast.domain.timeline.timeline import Outline

_LARGEST_INTEGER = (1 << 63) - 1
_RECORDS = f"kind IN ({', '.join(repr(kind.value) for kind in RECORD_KINDS)})"
_NOT_RECORDS = f"NOT {_RECORDS}"
_CHECKPOINT = f"SELECT {CHECKPOINT_COLUMNS} FROM checkpoints WHERE"
_OPERATION = f"SELECT {OPERATION_COLUMNS} FROM operations"
_ON_THE_LINE = (
    # UNION, so that rows that damage made circular are visited once.
    "WITH RECURSIVE line(id, parent, kind) AS ("
    " SELECT id, parent, kind FROM checkpoints WHERE session_id=?1 AND round=?2 AND id=?3"
    " UNION SELECT c.id, c.parent, c.kind FROM line JOIN checkpoints AS c ON c.id=line.parent"
    f" WHERE c.session_id=?1 AND c.round=?2) SELECT count(*) FROM line WHERE {_NOT_RECORDS}"
)
_RESTORES_SINCE = (
    # By session and kind, as in the index: the log itself can be very long.
    f"{_OPERATION} WHERE session_id IN (SELECT id FROM sessions)"
    f" AND kind IN ({', '.join(repr(kind.value) for kind in RESTORING_KINDS)}) AND sequence>max(?2,"
    f" ifnull((SELECT min(sequence) FROM operations WHERE session_id=?1), {_LARGEST_INTEGER}))"
    " ORDER BY +sequence LIMIT ?3"
)
_STEPS = "SELECT count(*) FROM migrations"
_CHANGES = "SELECT changes FROM seals WHERE name='settings'"

T = TypeVar("T")


class SqliteCatalog:
    """See `holdfast.ports.catalog.Catalog` for the contract of each member."""

    def __init__(
        self, path: Path, cipher: Cipher | None = None, sync_failures: SyncFailures | None = None
    ) -> None:
        """Open without changing anything; `migrate` (under the lock) makes it ready for use."""
        self._path = path
        self._sync_failures = sync_failures
        self._lock = threading.RLock()
        self.on_commit: Callable[[NotedOperation | NotedChanges], None] | None = None
        """Called with each change that has just become durable."""
        with database_trouble(path):
            self._db = connect(path, synchronous="FULL", cipher=cipher)
        self._steps = 0
        try:
            self.require_known_format()
        except BaseException:
            self._db.close()
            raise

    def require_known_format(self) -> None:
        """`NewerStore` if a later Holdfast wrote it, even if another process migrated it since it
        was opened. Writing in an earlier format would be damage."""
        with self._using() as db:
            if self._steps and db.execute(_STEPS).fetchall() == [(self._steps,)]:
                return
            applied = applied_migrations(db)
            require_known(applied)
            self._steps = len(applied)

    def is_migrated(self) -> bool:
        with self._using() as db:
            return len(applied_migrations(db)) == len(MIGRATIONS)

    def migrate(self) -> None:
        with self._using() as db:
            migrate(db)

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        if self._sync_failures is not None:
            self._sync_failures.refuse()
        with self._using() as db:
            with db:
                transaction = SqliteTransaction(db)
                yield transaction
                transaction.finish()
            self._report(transaction)
            fold_log(db, self._path, self._sync_failures)

    def _report(self, transaction: SqliteTransaction) -> None:
        if self.on_commit is None:
            return
        if transaction.newest_operation is not None:
            self.on_commit(NotedOperation(*transaction.newest_operation))
        if transaction.changes is not None:
            self.on_commit(NotedChanges(transaction.changes))

    def newest(self) -> tuple[NotedOperation | None, NotedChanges]:
        """The notes for the current state."""
        query = "SELECT sequence, checksum FROM operations ORDER BY sequence DESC LIMIT 1"
        found = self._rows(query)
        operation = NotedOperation(*found[0]) if found else None
        return operation, NotedChanges(self._rows("SELECT changes FROM seals")[0][0])

    def has(self, noted: NotedOperation | NotedChanges) -> bool:
        """Whether an acknowledged change is still here."""
        try:
            if isinstance(noted, NotedChanges):
                return any(count >= noted.count for (count,) in self._rows(_CHANGES))
            checksum = "SELECT checksum FROM operations WHERE sequence=?"
            return self._rows(checksum, noted.sequence) == [(noted.checksum,)]
        except StoreDamaged:
            return False

    def sessions(self) -> Sequence[Session]:
        query = f"SELECT {SESSION_COLUMNS} FROM sessions ORDER BY created_at_ns, id"
        return self._values(session_from_row, query)

    def session(self, session_id: SessionId) -> Session | None:
        query = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE id=?"
        return _first(self._values(session_from_row, query, session_id))

    def current_session(self) -> SessionId | None:
        rows = self._rows("SELECT value FROM facts WHERE key='current_session'")
        return SessionId(rows[0][0]) if rows else None

    def checkpoint(
        self, session_id: SessionId | None, checkpoint_id: str | None
    ) -> Checkpoint | None:
        if checkpoint_id is None:
            return None
        where, values = _within(session_id)
        return self._one(f"{_CHECKPOINT} {where} id=?", *values, checkpoint_id)

    def checkpoint_named(self, session_id: SessionId, name: str) -> Checkpoint | None:
        return self._one(f"{_CHECKPOINT} session_id=? AND name=?", session_id, name)

    def checkpoints_named(self, name: str) -> Sequence[Checkpoint]:
        # By session and name, as in the index.
        every = "session_id IN (SELECT id FROM sessions)"
        return self._many(f"{_CHECKPOINT} {every} AND name=? ORDER BY +sequence DESC", name)

    def checkpoints_with_prefix(
        self, session_id: SessionId | None, prefix: str, limit: int
    ) -> Sequence[Checkpoint]:
        after = prefix + "\U0010ffff"
        where, values = _within(session_id)
        query = f"{_CHECKPOINT} {where} id >= ? AND id < ? ORDER BY sequence DESC LIMIT ?"
        return self._many(query, *values, prefix, after, limit)

    def first_checkpoint(self, session_id: SessionId | None) -> Checkpoint | None:
        where, values = _within(session_id)
        return self._one(f"{_CHECKPOINT} {where} {_NOT_RECORDS} ORDER BY sequence LIMIT 1", *values)

    def checkpoint_at(self, session_id: SessionId | None, at_ns: int) -> Checkpoint | None:
        where, values = _within(session_id)
        query = f"{_CHECKPOINT} {where} {_NOT_RECORDS} AND created_at_ns<=?"
        within_64_bits = max(-_LARGEST_INTEGER, min(at_ns, _LARGEST_INTEGER))
        return self._one(f"{query} ORDER BY sequence DESC LIMIT 1", *values, within_64_bits)

    def history(
        self,
        session_id: SessionId | None,
        *,
        limit: int | None = None,
        records: bool = False,
        before: int | None = None,
    ) -> Sequence[Checkpoint]:
        where, values = _within(session_id)
        kinds = "" if records else f"{_NOT_RECORDS} AND"
        query = f"{_CHECKPOINT} {where} {kinds} sequence < ? ORDER BY sequence DESC LIMIT ?"
        ceiling = (1 << 62) if before is None else before
        return self._many(query, *values, ceiling, -1 if limit is None else limit)

    def outline(
        self, session_id: SessionId, *, limit: int, before: int | None = None
    ) -> Sequence[Outline]:

        query = f"{OUTLINE} WHERE session_id=? AND sequence < ? ORDER BY sequence DESC LIMIT ?"
        ceiling = (1 << 62) if before is None else before
        return self._values(outline_reader(), query, session_id, ceiling, limit)

    def milestones(self, session_id: SessionId) -> Sequence[Milestone]:
        query = f"{MILESTONE} WHERE session_id=? ORDER BY sequence"
        return self._values(milestone_from_row, query, session_id)

    def operations(
        self,
        session_id: SessionId,
        *,
        kinds: Sequence[OperationKind] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Operation]:
        chosen = "" if kinds is None else f"AND kind IN ({_marks(kinds)})"
        # The plus keeps SQLite from walking the whole log just to get it in order.
        order = "sequence" if kinds is None else "+sequence"
        query = f"{_OPERATION} WHERE session_id=? {chosen} AND sequence>? ORDER BY {order} LIMIT ?"
        values = (kind.value for kind in kinds or ())
        most = -1 if limit is None else limit
        return self._values(operation_from_row, query, session_id, *values, after, most)

    def restores_since(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Operation]:
        most = -1 if limit is None else limit
        return self._values(operation_from_row, _RESTORES_SINCE, session_id, after, most)

    def checkpoints_after(self, sequence: int, limit: int) -> Sequence[Checkpoint]:
        return self._many(f"{_CHECKPOINT} sequence>? ORDER BY sequence LIMIT ?", sequence, limit)

    def operations_after(self, sequence: int, limit: int) -> Sequence[Operation]:
        query = f"{_OPERATION} WHERE sequence>? ORDER BY sequence LIMIT ?"
        return self._values(operation_from_row, query, sequence, limit)

    def operations_before(
        self, sequence: int | None, limit: int, *, kinds: Sequence[OperationKind]
    ) -> Sequence[Operation]:
        query = (
            f"{_OPERATION} WHERE +kind IN ({_marks(kinds)}) AND sequence<?"
            " ORDER BY sequence DESC LIMIT ?"
        )
        ceiling = (1 << 62) if sequence is None else sequence
        values = (kind.value for kind in kinds)
        return self._values(operation_from_row, query, *values, ceiling, limit)

    def newest_operation(self) -> Operation | None:
        query = f"{_OPERATION} ORDER BY sequence DESC LIMIT 1"
        return _first(self._values(operation_from_row, query))

    def latest_operation(
        self, session_id: SessionId, *, other_than: Sequence[OperationKind]
    ) -> Operation | None:
        query = (
            f"{_OPERATION} WHERE session_id=? AND kind NOT IN ({_marks(other_than)})"
            " ORDER BY at_ns DESC, sequence DESC LIMIT 1"
        )
        values = (kind.value for kind in other_than)
        return _first(self._values(operation_from_row, query, session_id, *values))

    def operation_with_token(self, token: str) -> Operation | None:
        return _first(self._values(operation_from_row, f"{_OPERATION} WHERE token=?", token))

    def counts(self, session_id: SessionId | None = None) -> CatalogCounts:
        where, values = ("", ()) if session_id is None else ("WHERE session_id=?", (session_id,))
        kinds, done = (
            dict(self._rows(f"SELECT kind, count(*) FROM {table} {where} GROUP BY kind", *values))
            for table in ("checkpoints", "operations")
        )
        records = sum(kinds.get(kind.value, 0) for kind in RECORD_KINDS)
        return CatalogCounts(
            checkpoints=sum(kinds.values()) - records,
            records=records,
            restores=sum(done.get(kind.value, 0) for kind in RESTORING_KINDS),
        )

    def count(
        self, session_id: SessionId, kinds: Sequence[Kind], *, since_ns: int | None = None
    ) -> int:
        query = (
            "SELECT count(*) FROM checkpoints"
            f" WHERE session_id=? AND kind IN ({_marks(kinds)}) AND created_at_ns>?"
        )
        since = -_LARGEST_INTEGER if since_ns is None else since_ns
        values = (kind.value for kind in kinds)
        return int(self._rows(query, session_id, *values, since)[0][0])

    def count_in_round(
        self, session_id: SessionId, number: int, *, leading_to: str | None = None
    ) -> int:
        if leading_to is not None:
            return int(self._rows(_ON_THE_LINE, session_id, number, leading_to)[0][0])
        # Counting all and subtracting the few records avoids reading each row's kind.
        counted = "SELECT count(*) FROM checkpoints WHERE session_id=?1 AND round=?2"
        query = f"SELECT ({counted}) - ({counted} AND {_RECORDS})"
        return int(self._rows(query, session_id, number)[0][0])

    def newest_of(self, session_id: SessionId, kinds: Sequence[Kind]) -> Checkpoint | None:
        query = f"{_CHECKPOINT} session_id=? AND kind IN ({_marks(kinds)})"
        values = (kind.value for kind in kinds)
        return self._one(f"{query} ORDER BY sequence DESC LIMIT 1", session_id, *values)

    def fold_log(self) -> None:
        """Fold the log, however short it is; with the store's lock held."""
        with self._lock:
            fold_log(self._db, self._path, self._sync_failures, at_bytes=1)

    def forget_pages(self) -> None:
        """Release cached pages, which are quickly read again."""
        with self._lock:
            self._db.release_memory()

    def erase_traces(self) -> None:
        with self._using() as db:
            scrub(db, self._path)

    def settings(self) -> Mapping[str, str]:
        found = dict(self._rows("SELECT key, value FROM settings"))
        try:
            with self._lock:
                unlogged_changes(self._db)
        except (apsw.Error, ValueError, TypeError) as error:
            raise StoreDamaged(
                f"the settings in the catalog cannot be used: {error}", hint="run: holdfast repair"
            ) from error
        return found

    def check(self) -> Iterator[str]:
        from holdfast.adapters.local.verify import catalog_problems  # late: rarely needed

        with self._lock:
            yield from catalog_problems(self._db)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _using(self) -> Iterator[apsw.Connection]:
        with database_trouble(self._path, self._sync_failures), self._lock:
            yield self._db

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except UnicodeEncodeError:
            return []  # no row contains text that cannot be stored
        except DATABASE_TROUBLE as error:
            raise translate(error, self._path) from error

    def _one(self, query: str, *values: Any) -> Checkpoint | None:
        return _first(self._many(query, *values))

    def _many(self, query: str, *values: Any) -> list[Checkpoint]:
        return self._values(checkpoint_from_row, query, *values)

    def _values(
        self, from_row: Callable[[tuple[Any, ...]], T], query: str, *values: Any
    ) -> list[T]:
        try:
            return [from_row(row) for row in self._rows(query, *values)]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreDamaged(
                f"a row of the catalog cannot be read: {error}", hint="run: holdfast repair"
            ) from error


def _first(found: list[T]) -> T | None:
    return found[0] if found else None


def _within(session_id: SessionId | None) -> tuple[str, tuple[str, ...]]:
    """The start of a condition: one session, or all of them."""
    return ("", ()) if session_id is None else ("session_id=? AND", (session_id,))


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
