"""The stream of events in a SQLite file of its own; see `holdfast.ports.event_log`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import apsw

from holdfast.adapters.local.derived_database import DerivedDatabase
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.events import Event, EventType, NewEvent
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.ports.event_log import EventCursors, EventsLost

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.layout import StoreLayout

_FORMAT = "1"
_ADD = """
INSERT OR IGNORE INTO events (key, type, at_ns, session_id, checkpoint, about) VALUES (?,?,?,?,?,?)
"""
_AFTER = """
SELECT number, type, at_ns, session_id, checkpoint, about FROM events
WHERE number>? ORDER BY number LIMIT ?
"""


class SqliteEventLog(DerivedDatabase):
    """See `holdfast.ports.event_log.EventLog` for the contract of each member."""

    name = "stream of events"
    format = _FORMAT
    our_mark = b"CREATE TABLE events ("
    lost = EventsLost

    def cursors(self) -> EventCursors:
        def read(db: apsw.Connection) -> EventCursors:
            found = db.execute("SELECT value FROM facts WHERE key='cursors'").fetchall()
            known = json.loads(str(found[0][0])) if found else {}
            known["open_edits"] = tuple(known.get("open_edits", ()))
            return EventCursors(**known)

        return self._use(read)

    def take_in(self, new: Sequence[NewEvent], cursors: EventCursors) -> None:
        rows = [
            (one.key, one.type.value, one.at_ns, one.session_id, one.checkpoint, _json(one.about))
            for one in new
        ]

        def write(db: apsw.Connection) -> None:
            db.executemany(_ADD, rows)
            db.execute("REPLACE INTO facts VALUES ('cursors', ?)", (_json(asdict(cursors)),))

        self._write(write)

    def after(self, number: int, limit: int) -> Sequence[Event]:
        def read(db: apsw.Connection) -> list[Event]:
            return [_event(row) for row in db.execute(_AFTER, (number, limit)).fetchall()]

        return self._use(read)

    def newest(self) -> int:
        def read(db: apsw.Connection) -> int:
            [(number,)] = db.execute("SELECT seq FROM sqlite_sequence WHERE name='events'")
            return int(number)

        return self._use(read)

    def _schema(self) -> str:
        """Numbers begin at the microseconds of now. So a file that takes the place of a lost one
        gives out none again, as long as less than a million things happen in a second."""
        first = SystemClock.now_ns() // 1_000
        return f"""
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  at_ns INTEGER NOT NULL,
  session_id TEXT,
  checkpoint TEXT,
  about TEXT NOT NULL
);
INSERT INTO sqlite_sequence VALUES ('events', {first});
INSERT INTO facts VALUES ('format', '{_FORMAT}');
"""


class UnwritableEventLog(SqliteEventLog):
    """Of a store that takes no writes: in memory, with numbers that are this process's own."""

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else can come."""
        with self._lock:
            yield

    def _opened(self) -> apsw.Connection:
        if self._db is None:
            self._db = self._readied(apsw.Connection(":memory:"))
        return self._db

    def _make_way(self) -> None:
        self.close()


def open_event_log(layout: StoreLayout, cipher: Cipher | None) -> SqliteEventLog:
    """The log is not opened yet, nor made."""
    path: Path = layout.events
    lock = StoreLock(layout.events_lock, SystemClock(), purpose="events")
    kind = SqliteEventLog if lock.takes_writes() else UnwritableEventLog
    return kind(path, lock, cipher)


def _event(row: tuple[object, ...]) -> Event:
    number, kind, at_ns, session_id, checkpoint, about = row
    assert isinstance(number, int)
    assert isinstance(at_ns, int)
    return Event(
        number,
        EventType(str(kind)),
        at_ns,
        None if session_id is None else SessionId(str(session_id)),
        None if checkpoint is None else CheckpointId(str(checkpoint)),
        json.loads(str(about)),
    )


def _json(value: object) -> str:
    return json.dumps(value)
