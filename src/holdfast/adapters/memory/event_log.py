"""The stream of events in memory: see `holdfast.ports.event_log`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast.domain.events import Event, NewEvent
from holdfast.ports.event_log import EventCursors

_BEGINS_ABOVE = 1


class MemoryEventLog:
    def __init__(self) -> None:
        self._events: list[Event] = []
        self._keys: set[str] = set()
        self._cursors = EventCursors()
        self._lock = threading.RLock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._lock:
            yield

    def cursors(self) -> EventCursors:
        return self._cursors

    def take_in(self, new: Sequence[NewEvent], cursors: EventCursors) -> None:
        for one in new:
            if one.key not in self._keys:
                self._keys.add(one.key)
                self._events.append(
                    Event(
                        self.newest() + 1,
                        one.type,
                        one.at_ns,
                        one.session_id,
                        one.checkpoint,
                        one.about,
                    )
                )
        self._cursors = cursors

    def after(self, number: int, limit: int) -> Sequence[Event]:
        return [event for event in self._events if event.number > number][:limit]

    def newest(self) -> int:
        return self._events[-1].number if self._events else _BEGINS_ABOVE

    def close(self) -> None:
        return None
