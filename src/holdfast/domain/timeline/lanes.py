"""Assigns lanes to events, from the newest to the oldest, as in a commit graph.

    each lane waits for the parent of the last event drawn on it; that checkpoint is drawn on the
    first lane that waits for it, and all others that do end there

A restore's safety checkpoint is not drawn: its children wait for its parent instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import CheckpointId
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.sessions import Round
from holdfast.domain.story import Activity, ActivityKind, Annotation, Message
from holdfast.domain.timeline.timeline import (
    Cursor,
    Event,
    EventType,
    Happened,
    Outline,
    Sources,
    Timeline,
    merged,
    moment_of,
    older_than,
)

MOST_LANES = 64
"""Further lines share the last lane, because they could not be distinguished."""

_RESTORES = {
    OperationKind.RESTORE: EventType.RESTORE,
    OperationKind.UNDO: EventType.UNDO,
    OperationKind.REDO: EventType.REDO,
    OperationKind.RESET: EventType.RESET,
}
_ACTIVITIES = {
    ActivityKind.EDIT: EventType.EDIT,
    ActivityKind.ATTEMPT: EventType.ATTEMPT,
    ActivityKind.TOOL: EventType.TOOL,
}


def make_timeline(
    sources: Sources,
    cursor: Cursor,
    *,
    limit: int,
    head: CheckpointId | None = None,
    approved: CheckpointId | None = None,
    rounds: Sequence[Round] = (),
) -> Timeline:
    """The newest `limit` events of the sources, which hold one more if there is one."""
    ever = frozenset(one.approved for one in rounds if one.approved is not None)
    drawing = _LaneDrawing(cursor.lanes, sources.restores, head, ever)
    events: list[Event] = []
    last: dict[type, Happened] = {}
    more = False
    for happened in merged(sources):
        if len(events) >= limit:
            more = True
            break
        last[type(happened)] = happened
        event = drawing.place(happened)
        if event is not None:
            events.append(event)
    for happened in last.values():
        cursor = older_than(cursor, happened)
    following = replace(cursor, lanes=drawing.waiting).encode() if more else None
    return Timeline(tuple(events), tuple(rounds), head, approved, following)


class _LaneDrawing:
    def __init__(
        self,
        waiting: Sequence[CheckpointId | None],
        restores: Mapping[CheckpointId, Operation],
        head: CheckpointId | None,
        approved: Collection[CheckpointId],
    ) -> None:
        self._lanes: list[CheckpointId | None] = list(waiting[:MOST_LANES])
        self._restores = restores
        self._head = head
        self._approved = approved
        self._beside: tuple[int, ...] | None = None

    @property
    def waiting(self) -> tuple[CheckpointId | None, ...]:
        return tuple(self._lanes)

    def place(self, happened: Happened) -> Event | None:
        """The event as drawn; None if it is not drawn."""
        if isinstance(happened, (Outline, Round)):
            self._beside = None
            if isinstance(happened, Round):
                return self._approval(happened)
            if happened.kind is Kind.SAFETY:
                self._pass_on(happened)
                return None
            return self._row(happened)
        if self._beside is None:
            self._beside = self._open()
        beside = self._beside
        if isinstance(happened, Message):
            return Event(EventType.MESSAGE, happened.at_ns, passing=beside, message=happened)
        at_ns = moment_of(happened)
        if isinstance(happened, Annotation):
            return Event(EventType.ANNOTATION, at_ns, passing=beside, annotation=happened)
        assert isinstance(happened, Activity)
        return Event(_ACTIVITIES[happened.kind], at_ns, passing=beside, activity=happened)

    def _row(self, row: Outline) -> Event:
        lane, *joins = self._waiting_for(row.id) or [self._free_lane()]
        begins = self._lanes[lane] is None
        for other in joins:
            self._lanes[other] = None
        self._lanes[lane] = row.parent
        self._trim()
        operation = self._restores.get(row.id)
        kind = EventType.CHECKPOINT
        if row.kind is Kind.RESTORE:
            kind = EventType.RESTORE if operation is None else _RESTORES[operation.kind]
        return Event(
            kind,
            row.at_ns,
            lane,
            self._open(but=lane),
            tuple(joins),
            begins,
            row.parent is None,
            checkpoint=row,
            operation=operation,
            is_head=row.id == self._head,
            is_approved=row.id in self._approved,
        )

    def _approval(self, ended: Round) -> Event:
        """Next to the graph, on the line whose work was approved."""
        waiting = self._waiting_for(ended.approved) if ended.approved is not None else []
        begins = not waiting
        if not waiting:
            waiting = [self._free_lane()]
            self._lanes[waiting[0]] = ended.approved
        lane = waiting[0]
        return Event(
            EventType.APPROVE,
            moment_of(ended),
            lane,
            self._open(but=lane),
            begins=begins,
            ended=ended,
        )

    def _waiting_for(self, identifier: CheckpointId) -> list[int]:
        return [lane for lane, wanted in enumerate(self._lanes) if wanted == identifier]

    def _free_lane(self) -> int:
        for lane, wanted in enumerate(self._lanes):
            if wanted is None:
                return lane
        if len(self._lanes) < MOST_LANES:
            self._lanes.append(None)
        else:
            self._lanes[-1] = None
        return len(self._lanes) - 1

    def _pass_on(self, hidden: Outline) -> None:
        for lane in self._waiting_for(hidden.id):
            self._lanes[lane] = hidden.parent
        self._trim()

    def _open(self, but: int | None = None) -> tuple[int, ...]:
        lanes = enumerate(self._lanes)
        return tuple(lane for lane, wanted in lanes if wanted is not None and lane != but)

    def _trim(self) -> None:
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()
