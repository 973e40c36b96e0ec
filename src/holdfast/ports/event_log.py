"""The numbered stream of workspace events, collected from catalog and story.

Saves do not write to it. A follower first collects new events, in one transaction with its read
position, so that all followers see the same numbers. If the file is lost, numbers continue above
all earlier ones, and every event is delivered again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.domain.events import Event, NewEvent
from holdfast.values.classes import dataclass, field


class EventsLost(Exception):
    """The file was invalid and has been replaced by an empty one."""


@dataclass(frozen=True, slots=True)
class EventCursors:
    """How far each source has been read.

    An `operation` whose `operation_mark` no longer matches belongs to another log. `story` is the
    version of the story. `open_edits` have not ended yet. `sessions` and `settings` are the last
    known values: status by id, digest of the value by key."""

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
    """Any method may raise `EventsLost`; the next call finds an empty log."""

    def after(self, number: int, limit: int) -> Sequence[Event]:
        """Events after a number, in order."""

    def newest(self) -> int:
        """The highest number so far; in an empty log, the number that it starts above."""

    def close(self) -> None: ...


class EventLog(EventReader, Protocol):
    """The log with its write methods."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Become the only process that collects events; `Busy` after a timeout."""

    def cursors(self) -> EventCursors: ...

    def ingest(self, new: Sequence[NewEvent], cursors: EventCursors) -> None:
        """Add all events, in this order, or none. Known keys are skipped."""


class ChangeListener(Protocol):
    """Wakes when another process or thread has written to catalog or story."""

    def wait(self, timeout_s: float) -> bool:
        """Whether something was written since the last call; returns after `timeout_s` at the
        latest. It may wake without a reason. It wakes within a fifth of a second of a write."""

    def stop(self) -> None:
        """End another thread's wait immediately, and every later one."""

    def close(self) -> None: ...
