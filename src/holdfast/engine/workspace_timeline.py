"""The timeline of a whole workspace: those of its sessions in one stream, newest first.

    a page of each session → always the newest event of all → the first `limit` of them
    lanes: each session has its own, beside those of the sessions that stand above it

A page's `next` names for each session where it goes on, so that pages fit together exactly.
Not guaranteed: that a session keeps its lane on the next page.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.domain.errors import UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.timeline import Event, Timeline
from holdfast.engine.session_overview import listed_sessions
from holdfast.engine.timeline import MOST_EVENTS, timeline
from holdfast.engine.vault import Vault
from holdfast.engine.workspace_head import standing_on

_NEWEST = ""
"""The place of a session of which nothing was told yet."""


@dataclass(slots=True)
class _Strand:
    """One session on a page: its events, how many of them were taken, and its first lane."""

    session_id: SessionId
    place: str
    page: Timeline
    taken: int = 0
    offset: int = 0
    lanes: frozenset[int] = field(default_factory=frozenset)
    """Those that go on below the last event taken."""

    @property
    def newest(self) -> Event | None:
        return self.page.events[self.taken] if self.taken < len(self.page.events) else None

    def take(self, head: CheckpointId | None) -> Event:
        event = self.page.events[self.taken]
        self.taken += 1
        own = () if event.lane is None or event.ends else (event.lane,)
        self.lanes = frozenset(lane + self.offset for lane in (*event.passing, *own))
        found = event.checkpoint
        return event._replace(
            lane=None if event.lane is None else event.lane + self.offset,
            passing=tuple(lane + self.offset for lane in event.passing),
            joins=tuple(lane + self.offset for lane in event.joins),
            is_head=found is not None and found.id == head,
            session_id=self.session_id,
        )


def workspace_timeline(
    vault: Vault, *, limit: int, before: str | None, messages: bool = True
) -> Timeline:
    """The newest events of all sessions, or those before the place that the page before named."""
    sessions = [one.id for one in listed_sessions(vault)]
    places = dict.fromkeys(sessions, _NEWEST) if before is None else _decoded(before)
    limit = min(limit, MOST_EVENTS)
    strands = [
        _Strand(one, places[one], _page(vault, one, limit, places[one], messages=messages))
        for one in sessions
        if one in places
    ]
    at = standing_on(vault, None)
    events = _merged(strands, limit, None if at is None else at.id)
    rest = ((one.session_id, _next(vault, one, messages)) for one in strands)
    more = {session: place for session, place in rest if place is not None}
    return Timeline(
        tuple(events),
        head=None if at is None else at.id,
        next=json.dumps(more) if more else None,
        warnings=tuple(dict.fromkeys(said for one in strands for said in one.page.warnings)),
    )


def _page(
    vault: Vault, session_id: SessionId, limit: int, place: str, *, messages: bool
) -> Timeline:
    return timeline(vault, session_id, limit=limit, before=place or None, messages=messages)


def _merged(strands: Sequence[_Strand], limit: int, head: CheckpointId | None) -> list[Event]:
    events: list[Event] = []
    free = 0
    while len(events) < limit:
        waiting = [(one, event) for one in strands if (event := one.newest) is not None]
        if not waiting:
            break
        strand, _ = max(waiting, key=lambda pair: pair[1].at_ns)
        if not strand.taken:
            strand.offset, free = free, free + strand.page.lanes
        event = strand.take(head)
        beside = {
            lane
            for other in strands
            if other is not strand and other.taken and _goes_on(other)
            for lane in other.lanes
        }
        events.append(event._replace(passing=tuple(sorted({*event.passing, *beside}))))
    return events


def _goes_on(strand: _Strand) -> bool:
    return strand.newest is not None or strand.page.next is not None


def _next(vault: Vault, strand: _Strand, messages: bool) -> str | None:
    """Where the session goes on; None when all of it was told."""
    if strand.taken == len(strand.page.events):
        return strand.page.next
    if not strand.taken:
        return strand.place
    told = _page(vault, strand.session_id, strand.taken, strand.place, messages=messages)
    return told.next


def _decoded(text: str) -> dict[SessionId, str]:
    try:
        found = json.loads(text)
        if isinstance(found, dict) and all(isinstance(place, str) for place in found.values()):
            return {SessionId(session): place for session, place in found.items()}
    except (ValueError, RecursionError):
        pass
    raise UsageError(
        f"{text!r:.40} is no place in a timeline of the workspace",
        hint="give back what the page before said comes next, of a timeline of the workspace",
    )
