"""The numbered stream of workspace events, collected from catalog and story.

Derived: no save writes to it. A follower of the stream first collects new events, in one
transaction with its read position; everybody then reads the same numbers. When the file is lost,
numbers continue above all earlier ones, and every event is delivered again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.domain.events import Event, NewEvent
from holdfast.values.classes import dataclass, field


class EventsLost(Exception):
    """The file's content was invalid: an empty one has taken its place."""


@dataclass(frozen=True, slots=True)
class EventCursors:
    """How far each source has been read. An `operation` whose `operation_mark` no longer matches
    belongs to another log; `story` is the version of the story. `open_edits` have not ended yet.
    `sessions` and `settings` are as they were: status by id, digest of the value by key."""

    operation: int = 0
    operation_mark: str = ""
    story: str = ""
    message: int = 0
    annotation: int = 0
    activity: int = 0
    open_edits: tuple[int, ...] = ()
    sessions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


class EventReader(Protocol):
    """Any member may raise `EventsLost`; the next call finds an empty log."""

    def after(self, number: int, limit: int) -> Sequence[Event]:
        """In order."""

    def newest(self) -> int:
        """The highest number that was given out; what it begins above, if none was."""

    def close(self) -> None: ...


class EventLog(EventReader, Protocol):
    """The log with its writing side."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Be the only one who takes in; `Busy` after a wait."""

    def cursors(self) -> EventCursors: ...

    def ingest(self, new: Sequence[NewEvent], cursors: EventCursors) -> None:
        """All or nothing, in this order; a key that is there already is left out."""


class ChangeListener(Protocol):
    """Wakes when another process, or another thread, has written to catalog or story."""

    def wait(self, timeout_s: float) -> bool:
        """Whether something was written since the last call, at the latest after `timeout_s`. It
        may wake for nothing; it wakes within a fifth of a second of a write."""

    def stop(self) -> None:
        """End a wait of another thread at once, and every later one."""

    def close(self) -> None: ...
