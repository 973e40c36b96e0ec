"""The timeline of a session, a page at a time, from catalog and story.

Checkpoints and messages are read a chunk at a time while the page is made, so that it costs what
stands on it; annotations, activities and restores, which are few, are read whole.
A story that cannot be read costs what it would have told, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from holdfast.domain.errors import UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.messages import Message
from holdfast.domain.operations import RESTORING_KINDS
from holdfast.domain.rounds import RoundStatus
from holdfast.domain.timeline import Cursor, Outline, Sources, Timeline
from holdfast.domain.timeline_lanes import make_timeline
from holdfast.engine.approval import rounds_in
from holdfast.engine.told import Told
from holdfast.engine.vault import Vault
from holdfast.engine.workspace_head import standing_on
from holdfast.ports.story import Story

MOST_EVENTS = 1_000_000
"""On one page; what is older comes with the next."""

_FIRST_CHUNK = 250
_LARGEST_CHUNK = 1_000


def timeline(
    vault: Vault,
    session_id: SessionId,
    *,
    limit: int,
    before: str | None,
    messages: bool = True,
) -> Timeline:
    """The newest events, or those before the place that the page before named as `next`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise UsageError(
            f"the limit {limit!r} is not a number of events from 1 on",
            hint="leave it out for the usual number",
        )
    limit = min(limit, MOST_EVENTS)
    cursor = Cursor() if before is None else Cursor.decode(before)
    session = vault.catalog.session(session_id)
    if session is None:
        return Timeline(())
    told = Told(vault)
    rounds = rounds_in(vault, session_id)
    restores = vault.catalog.operations(session_id, kinds=RESTORING_KINDS)
    notes = told(lambda story: story.annotations(session_id))
    done = told(lambda story: story.activities(session_id))
    sources = Sources(
        _outlines(vault, session_id, cursor.checkpoint, limit),
        [
            one
            for one in reversed(rounds)
            if one.status is RoundStatus.MERGED and one.number < cursor.approval
        ],
        _messages(told, session_id, cursor.message, limit) if messages else (),
        sorted(
            (note for note in notes if note.sequence < cursor.annotation),
            key=lambda note: -note.sequence,
        ),
        [one for one in reversed(done) if one.number < cursor.activity],
        {op.checkpoint: op for op in restores if op.checkpoint is not None},
    )
    head = standing_on(vault, session_id)
    page = make_timeline(
        sources,
        cursor,
        limit=limit,
        head=head.id if head is not None else None,
        approved=session.approved,
        rounds=rounds,
    )
    if told.trouble is None:
        return page
    return replace(page, warnings=(f"messages and annotations are missing: {told.trouble}",))


def _outlines(vault: Vault, session_id: SessionId, before: int, limit: int) -> Iterator[Outline]:
    """Newest first."""
    for size in _chunks(limit):
        chunk = vault.catalog.outline(session_id, limit=size, before=before)
        yield from chunk
        if len(chunk) < size:
            return
        before = chunk[-1].sequence


def _messages(told: Told, session_id: SessionId, before: int, limit: int) -> Iterator[Message]:
    """Newest first."""
    counted = told(lambda story: (story.message_count(session_id),))
    end = min(before, *counted) if counted else 0
    for size in _chunks(limit):
        first = max(end - size, 0)
        if first == end:
            return
        found = told(partial(_stretch, session_id=session_id, first=first, limit=end - first))
        yield from reversed(found)
        end = first


def _stretch(story: Story, *, session_id: SessionId, first: int, limit: int) -> Sequence[Message]:
    return story.messages(session_id, first=first, limit=limit)


def _chunks(limit: int) -> Iterator[int]:
    """How many to read at once, without end: few for a short page, more for a long one."""
    size = _FIRST_CHUNK
    while True:
        yield min(size, limit + 1)
        size = min(2 * size, _LARGEST_CHUNK)
