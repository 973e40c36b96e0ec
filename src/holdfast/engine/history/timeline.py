"""The timeline of a session or of the whole workspace, a page at a time, from catalog and story.

Checkpoints and messages are read in chunks while the page is built, so a page costs only its own
content. Annotations, activities and restores are few, and are read whole. If the story cannot be
read, its events are missing, and the page says so.

    workspace: a page of each session → repeatedly the newest event of all → the first `limit`
    lanes: each session has its own, beside those of the sessions above it

A page's `next` holds a position for each session, so that pages fit together exactly.
Not guaranteed: that a session keeps its lane on the next page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile

from holdfast.domain.errors import UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import RESTORING_KINDS
from holdfast.domain.sessions import RoundStatus
from holdfast.domain.story import Message
from holdfast.domain.timeline.lanes import make_timeline
from holdfast.domain.timeline.timeline import (
    Cursor,
    Event,
    Happened,
    Outline,
    Sources,
    Timeline,
    moment_of,
)
from holdfast.engine.conversation.conversation import BestEffortStory
from holdfast.engine.conversation.message_checkpoints import with_checkpoints
from holdfast.engine.history.history import head_checkpoint
from holdfast.engine.sessions.approval import counted_rounds
from holdfast.engine.sessions.overview import listed_sessions
from holdfast.engine.vault import Vault
from holdfast.ports.story import StoryReader

MOST_EVENTS = 1_000_000
"""Per page; older ones come with the next."""

_FOREVER_NS = 1 << 63
_FIRST_CHUNK = 250
_LARGEST_CHUNK = 1_000


def timeline(
    vault: Vault,
    session_id: SessionId,
    *,
    limit: int,
    before: str | None,
    messages: bool = True,
    since_ns: int | None = None,
) -> Timeline:
    """The newest events, or those before the previous page's `next`. With `since_ns`, nothing older
    is read."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise UsageError(
            f"the limit {limit!r} must be 1 or more",
            hint="leave it out for the default",
        )
    limit = min(limit, MOST_EVENTS)
    cursor = Cursor() if before is None else Cursor.decode(before)
    session = vault.catalog.session(session_id)
    if session is None:
        return Timeline(())
    story = BestEffortStory(vault)
    rounds = counted_rounds(vault, session_id)
    restores = vault.catalog.operations(session_id, kinds=RESTORING_KINDS)
    notes = story(lambda story: story.annotations(session_id))
    done = story(lambda story: story.activities(session_id))
    young = partial(_is_recent, -_FOREVER_NS if since_ns is None else since_ns)
    sources = Sources(
        takewhile(young, _outlines(vault, session_id, cursor.checkpoint, limit)),
        [
            one
            for one in reversed(rounds)
            if one.status is RoundStatus.MERGED and one.number < cursor.approval and young(one)
        ],
        takewhile(young, _messages(story, session_id, cursor.message, limit)) if messages else (),
        sorted(
            (note for note in notes if note.sequence < cursor.annotation and young(note)),
            key=lambda note: -note.sequence,
        ),
        [one for one in reversed(done) if one.number < cursor.activity and young(one)],
        {op.checkpoint: op for op in restores if op.checkpoint is not None},
    )
    head = head_checkpoint(vault, session_id)
    page = make_timeline(
        sources,
        cursor,
        limit=limit,
        head=head.id if head is not None else None,
        approved=session.approved,
        rounds=rounds,
    )
    page = replace(page, events=_with_message_checkpoints(vault, session_id, page.events))
    if story.trouble is None:
        return page
    return replace(page, warnings=(f"messages and notes are missing: {story.trouble}",))


def _with_message_checkpoints(
    vault: Vault, session_id: SessionId, events: tuple[Event, ...]
) -> tuple[Event, ...]:
    said = [event.message for event in events if event.message is not None]
    if not said:
        return events
    rows = [event.checkpoint for event in events if event.checkpoint is not None]
    # The checkpoint before the last message may be on the next page.
    following = vault.catalog.outline(
        session_id, limit=_FIRST_CHUNK, before=rows[-1].sequence if rows else None
    )
    found = with_checkpoints(vault, session_id, said, [*rows, *following])
    known = {one.index: one for one in found}
    return tuple(
        event if event.message is None else event._replace(message=known[event.message.index])
        for event in events
    )


def _is_recent(since_ns: int, happened: Happened) -> bool:
    return moment_of(happened) >= since_ns


def _outlines(vault: Vault, session_id: SessionId, before: int, limit: int) -> Iterator[Outline]:
    """Newest first."""
    for size in _chunks(limit):
        chunk = vault.catalog.outline(session_id, limit=size, before=before)
        yield from chunk
        if len(chunk) < size:
            return
        before = chunk[-1].sequence


def _messages(
    story: BestEffortStory, session_id: SessionId, before: int, limit: int
) -> Iterator[Message]:
    """Newest first."""
    counted = story(lambda story: (story.message_count(session_id),))
    end = min(before, *counted) if counted else 0
    for size in _chunks(limit):
        first = max(end - size, 0)
        if first == end:
            return
        found = story(partial(_stretch, session_id=session_id, first=first, limit=end - first))
        yield from reversed(found)
        end = first


def _stretch(
    story: StoryReader, *, session_id: SessionId, first: int, limit: int
) -> Sequence[Message]:
    return story.messages(session_id, first=first, limit=limit)


def _chunks(limit: int) -> Iterator[int]:
    """How many to read at once, endlessly: few for a short page, more for a long one."""
    size = _FIRST_CHUNK
    while True:
        yield min(size, limit + 1)
        size = min(2 * size, _LARGEST_CHUNK)


_NEWEST = ""
"""The position of a session of which nothing has been shown."""


@dataclass(slots=True)
class _Strand:
    """One session on a page: its events, the number of events taken, and its first lane."""

    session_id: SessionId
    place: str
    page: Timeline
    taken: int = 0
    offset: int = 0
    lanes: frozenset[int] = field(default_factory=frozenset)
    """Lanes that continue below the last event taken."""

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
    vault: Vault,
    *,
    limit: int,
    before: str | None,
    messages: bool = True,
    since_ns: int | None = None,
) -> Timeline:
    """The newest events of all sessions, or those before the previous page's `next`. With
    `since_ns`, nothing older is read."""
    sessions = [one.id for one in listed_sessions(vault)]
    places = dict.fromkeys(sessions, _NEWEST) if before is None else _decoded(before)
    limit = min(limit, MOST_EVENTS)

    def page(session_id: SessionId, most: int, place: str) -> Timeline:
        return timeline(
            vault,
            session_id,
            limit=most,
            before=place or None,
            messages=messages,
            since_ns=since_ns,
        )

    strands = [
        _Strand(one, places[one], page(one, limit, places[one]))
        for one in sessions
        if one in places
    ]
    at = head_checkpoint(vault, None)
    events = _merged(strands, limit, None if at is None else at.id)
    rest = ((one.session_id, _next(one, page)) for one in strands)
    more = {session: place for session, place in rest if place is not None}
    return Timeline(
        tuple(events),
        head=None if at is None else at.id,
        next=json.dumps(more) if more else None,
        warnings=tuple(dict.fromkeys(said for one in strands for said in one.page.warnings)),
    )


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


def _next(strand: _Strand, page: Callable[[SessionId, int, str], Timeline]) -> str | None:
    """The session's next position; None if all of it was shown."""
    if strand.taken == len(strand.page.events):
        return strand.page.next
    if not strand.taken:
        return strand.place
    return page(strand.session_id, strand.taken, strand.place).next


def _decoded(text: str) -> dict[SessionId, str]:
    try:
        found = json.loads(text)
        if isinstance(found, dict) and all(isinstance(place, str) for place in found.values()):
            return {SessionId(session): place for session, place in found.items()}
    except (ValueError, RecursionError):
        pass
    raise UsageError(
        f"{text!r:.40} is not a position in a workspace timeline",
        hint="pass the position that the previous page of a workspace timeline returned",
    )
