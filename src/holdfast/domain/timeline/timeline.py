"""All events of a session as one stream, newest first, with lanes.

    merge, newest first: checkpoints and records by sequence (I7), approvals by their round,
    messages by the index recorded in checkpoints, all others by time → assign a lane to each

A lane is a line of work. A new one begins where work continues from an older checkpoint. The
command line and the web page draw exactly this data. A page can end anywhere, and its cursor has
everything that the next page needs to continue the drawing.

Guarantee: each source keeps its own order, whatever the clocks show. Not guaranteed: increasing
times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation
from holdfast.domain.restore.selections import Selection
from holdfast.domain.sessions import Round
from holdfast.domain.story import Activity, Annotation, Message
from holdfast.values.classes import NamedTuple, dataclass, field, replace

_LAST = 1 << 62


class Outline(NamedTuple):
    """A checkpoint reduced to what a timeline shows, so that it is quick to read."""

    sequence: int
    id: CheckpointId
    parent: CheckpointId | None
    kind: Kind
    at_ns: int
    reasoning: str
    name: str | None
    confidence: float
    added: int
    modified: int
    removed: int
    restores_from: CheckpointId | None
    partial: bool
    message_index: int | None
    tool_use_id: str | None
    round: int
    selected: Selection | None = None
    """The selection of a partial restore."""


class EventType(StrEnum):
    CHECKPOINT = "checkpoint"
    RESTORE = "restore"
    UNDO = "undo"
    REDO = "redo"
    RESET = "reset"
    APPROVE = "approve"
    MESSAGE = "message"
    ANNOTATION = "annotation"
    EDIT = "edit"
    ATTEMPT = "attempt"
    TOOL = "tool"


class Event(NamedTuple):
    """One event. `lane` is where it is drawn, None if next to the graph. `passing` lanes continue
    beside it; `joins` end in it, because their work started here. `begins`: nothing newer is on its
    lane. `ends`: nothing older is."""

    type: EventType
    at_ns: int
    lane: int | None = None
    passing: tuple[int, ...] = ()
    joins: tuple[int, ...] = ()
    begins: bool = False
    ends: bool = False
    checkpoint: Outline | None = None
    operation: Operation | None = None
    message: Message | None = None
    annotation: Annotation | None = None
    activity: Activity | None = None
    ended: Round | None = None
    is_head: bool = False
    is_approved: bool = False
    session_id: SessionId | None = None
    """Set in a timeline of several sessions."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended: older entries are still to come. Also the checkpoints that lanes wait
    for."""

    checkpoint: int = _LAST
    approval: int = _LAST
    message: int = _LAST
    annotation: int = _LAST
    activity: int = _LAST
    lanes: tuple[CheckpointId | None, ...] = ()

    def encode(self) -> str:
        return json.dumps([getattr(self, name) for name in Cursor.__dataclass_fields__])

    @classmethod
    def decode(cls, text: str) -> Cursor:
        try:
            *numbers, lanes = json.loads(text)
            if not all(type(number) is int for number in numbers):
                raise ValueError("numbers")
            if not all(lane is None or isinstance(lane, str) for lane in lanes):
                raise ValueError("lanes")
            first, second, third, fourth, fifth = (max(0, min(n, _LAST)) for n in numbers)
            waiting = tuple(CheckpointId(lane) if lane else None for lane in lanes)
            return cls(first, second, third, fourth, fifth, waiting)
        except (ValueError, TypeError, RecursionError):
            raise UsageError(
                f"{text!r:.40} is not a position in a timeline",
                hint="pass the position that the previous page returned",
            ) from None


@dataclass(frozen=True, slots=True)
class Sources:
    """All entries older than the cursor, newest first; only as many are read as are shown. `merged`
    are approved rounds. `restores` are operations by their record."""

    checkpoints: Iterable[Outline] = ()
    merged: Iterable[Round] = ()
    messages: Iterable[Message] = ()
    annotations: Iterable[Annotation] = ()
    activities: Iterable[Activity] = ()
    restores: Mapping[CheckpointId, Operation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A page, newest first. `next` leads to the older page; None on the last one."""

    events: tuple[Event, ...]
    rounds: tuple[Round, ...] = ()
    head: CheckpointId | None = None
    approved: CheckpointId | None = None
    next: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def lanes(self) -> int:
        """How many lanes a drawing needs."""
        used = [
            lane
            for event in self.events
            for lane in (event.lane or 0, *event.passing, *event.joins)
        ]
        return max(used, default=0) + 1


Happened: TypeAlias = Outline | Round | Message | Annotation | Activity


def merged(sources: Sources) -> Iterator[Happened]:
    """All entries: always the newest of the five sources' next ones."""
    rows, approvals, messages, annotations, activities = (
        _Head(iter(source))
        for source in (
            sources.checkpoints,
            sources.merged,
            sources.messages,
            sources.annotations,
            sources.activities,
        )
    )
    line = approvals if _approval_is_newer(approvals.value, rows.value) else rows
    while True:
        newest = messages if _message_is_newer(messages.value, line.value) else line
        for side in (activities, annotations):
            if side.value is not None and (
                newest.value is None or moment_of(side.value) > moment_of(newest.value)
            ):
                newest = side
        if newest.value is None:
            return
        yield newest.value
        newest.advance()
        if newest is line:
            line = approvals if _approval_is_newer(approvals.value, rows.value) else rows


def moment_of(happened: Happened) -> int:
    """The wall-clock time."""
    if isinstance(happened, Activity):
        return happened.started_at_ns
    if isinstance(happened, Round):
        return happened.ended_at_ns or happened.started_at_ns
    return happened.at_ns


def older_than(cursor: Cursor, happened: Happened) -> Cursor:
    """The cursor after this event."""
    if isinstance(happened, Outline):
        return replace(cursor, checkpoint=happened.sequence)
    if isinstance(happened, Round):
        return replace(cursor, approval=happened.number)
    if isinstance(happened, Message):
        return replace(cursor, message=happened.index)
    if isinstance(happened, Annotation):
        return replace(cursor, annotation=happened.sequence)
    return replace(cursor, activity=happened.number)


class _Head:
    """The next entry of a source, or None at its end."""

    __slots__ = ("_rest", "value")

    def __init__(self, rest: Iterator[Any]) -> None:
        self._rest = rest
        self.value: Any = next(rest, None)

    def advance(self) -> None:
        self.value = next(self._rest, None)


def _approval_is_newer(approval: Round | None, row: Outline | None) -> bool:
    """Everything in a round precedes its approval, and everything in later rounds follows it."""
    if approval is None or row is None:
        return approval is not None
    return row.round <= approval.number


def _message_is_newer(message: Message | None, other: Happened | None) -> bool:
    if message is None or other is None:
        return message is not None
    if isinstance(other, Outline) and other.message_index is not None and not other.kind.is_record:
        return message.index > other.message_index
    return message.at_ns > moment_of(other)
