"""The timeline of a session, a page at a time, from catalog and story.

Of everything no more is read than a page can need, annotations and activities apart, which are few.
A story that cannot be read costs what it would have told, and the page says so.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.domain.checkpoints import Kind
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

MOST_EVENTS = 1_000_000
"""On one page; what is older comes with the next."""


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
        raise UsageError(f"the limit {limit!r} is not a number of events from 1 on")
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
        _outlines(vault, session_id, cursor.checkpoint, limit + 1),
        [
            one
            for one in reversed(rounds)
            if one.status is RoundStatus.MERGED and one.number < cursor.approval
        ],
        _messages(told, session_id, cursor.message, limit + 1) if messages else (),
        sorted(
            (note for note in notes if note.sequence < cursor.annotation),
            key=lambda note: -note.sequence,
        ),
        [one for one in reversed(done) if one.number < cursor.activity],
        {op.checkpoint: op for op in restores if op.checkpoint is not None},
    )
    page = make_timeline(
        sources, cursor, limit=limit, head=session.head, approved=session.approved, rounds=rounds
    )
    if told.trouble is None:
        return page
    return replace(page, warnings=(f"messages and annotations are missing: {told.trouble}",))


def _outlines(vault: Vault, session_id: SessionId, before: int, wanted: int) -> list[Outline]:
    """At least so many that are drawn, if there are."""
    found: list[Outline] = []
    drawn = 0
    while drawn < wanted:
        chunk = vault.catalog.outline(session_id, limit=wanted, before=before)
        found += chunk
        drawn += sum(row.kind is not Kind.SAFETY for row in chunk)
        if len(chunk) < wanted:
            break
        before = chunk[-1].sequence
    return found


def _messages(told: Told, session_id: SessionId, before: int, wanted: int) -> list[Message]:
    counted = told(lambda story: (story.message_count(session_id),))
    end = min(before, *counted) if counted else 0
    first = max(end - wanted, 0)
    found = told(lambda story: story.messages(session_id, first=first, limit=end - first))
    return list(reversed(found))
