"""The event stream, in a separate SQLite file; see `holdfast.ports.event_log`.

Followers wake when the catalog or the story was written, by inotify if available. Otherwise, the
sizes and times of four files are checked a few times a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.adapters.local.derived_database import DerivedDatabase
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.events import Event, EventType, NewEvent
from holdfast.ports.event_log import EventCursors, EventsLost

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.ports.event_log import ChangeListener

_FORMAT = "1"
_VALUES = attrgetter("key", "type.value", "at_ns", "session_id", "checkpoint")
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

    def ingest(self, new: Sequence[NewEvent], cursors: EventCursors) -> None:
        rows = [(*_VALUES(one), json.dumps(one.about)) for one in new]

        def write(db: apsw.Connection) -> None:
            db.executemany(_ADD, rows)
            db.execute("REPLACE INTO facts VALUES ('cursors', ?)", (json.dumps(asdict(cursors)),))

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
        """Numbers start at the current time in microseconds. So a file that replaces a lost one
        reuses none, as long as there are fewer than a million events a second."""
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
    """For a store that cannot be written: in memory, with numbers of this process only."""

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """There are no other processes."""
        with self._lock:
            yield

    def _opened(self) -> apsw.Connection:
        if self._db is None:
            self._db = self._prepared(apsw.Connection(":memory:"))
        return self._db

    def _discard(self) -> None:
        self.close()


def open_event_log(layout: StoreLayout, cipher: Cipher | None) -> SqliteEventLog:
    """The log is neither opened nor created yet."""
    lock = StoreLock(layout.events_lock, SystemClock(), purpose="events")
    kind = SqliteEventLog if lock.takes_writes() else UnwritableEventLog
    return kind(layout.events, lock, cipher)


def _event(row: tuple[Any, ...]) -> Event:
    number, kind, at_ns, session_id, checkpoint, about = row
    return Event(number, EventType(kind), at_ns, session_id, checkpoint, json.loads(about))


_LOOK_S = 0.15
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class _Stop:
    """A pipe that is written to once."""

    def __init__(self) -> None:
        self.read_fd, self._write_fd = os.pipe()  # closed on exec; macOS has no pipe2
        os.set_blocking(self._write_fd, False)

    def stop(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._write_fd, b"!")

    def close(self) -> None:
        os.close(self.read_fd)
        os.close(self._write_fd)


def _readable(fds: Iterable[int], timeout_s: float) -> list[int]:
    """With `poll`: `select` fails for descriptors above 1023."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(max(timeout_s, 0) * 1000)]


class InotifyListener:
    """See `holdfast.ports.event_log.ChangeListener`."""

    def __init__(self, layout: StoreLayout) -> None:
        from holdfast.adapters.local import linux_calls as calls

        self._names = frozenset(os.fsencode(path) for path in _names(layout))
        with contextlib.ExitStack() as opened:
            self._queue = calls.Inotify()
            opened.callback(self._queue.close)
            directory = os.open(layout.directory, _DIRECTORY)
            try:
                mask = calls.MODIFY | calls.CREATE | calls.MOVED_TO | calls.DELETE_SELF
                self._queue.add(directory, mask)
            finally:
                os.close(directory)
            self._stop = _Stop()
            opened.pop_all()

    def wait(self, timeout_s: float) -> bool:
        ready = _readable((self._queue.fd, self._stop.read_fd), timeout_s)
        changed = False
        while events := self._queue.read():
            changed = changed or any(
                event.name in self._names or not event.name for event in events
            )
        return changed or self._stop.read_fd in ready

    def stop(self) -> None:
        self._stop.stop()

    def close(self) -> None:
        self._stop.close()
        self._queue.close()


class PollingListener:
    """See `holdfast.ports.event_log.ChangeListener`."""

    def __init__(self, layout: StoreLayout) -> None:
        self._paths = [layout.directory / name for name in _names(layout)]
        self._seen = self._look()
        self._stop = _Stop()

    def wait(self, timeout_s: float) -> bool:
        while (now := self._look()) == self._seen:
            step = min(_LOOK_S, timeout_s)
            if _readable((self._stop.read_fd,), step):
                return True
            timeout_s -= step
            if timeout_s <= 0:
                return False
        self._seen = now
        return True

    def stop(self) -> None:
        self._stop.stop()

    def close(self) -> None:
        self._stop.close()

    def _look(self) -> list[tuple[int, ...] | None]:
        return list(map(_stamp, self._paths))


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def open_change_listener(layout: StoreLayout) -> ChangeListener:
    try:
        return InotifyListener(layout)
    except (OSError, AttributeError):  # no inotify, or its instance limit is reached
        return PollingListener(layout)


def _names(layout: StoreLayout) -> list[str]:
    return [
        path.name + suffix for path in (layout.catalog, layout.story) for suffix in ("", "-wal")
    ]
