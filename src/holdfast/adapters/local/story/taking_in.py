"""Rows of another story, added to this one where they do not collide with what it has."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from holdfast.adapters.local.story.queries import has_source, message_count, next_number
from holdfast.adapters.local.story.rows import INSERT, calls_to_text, sealed
from holdfast.domain.ids import SessionId
from holdfast.domain.messages import Annotation, Message


def take_in(
    db: apsw.Connection, messages: Sequence[Message], annotations: Sequence[Annotation]
) -> int:
    counts: dict[SessionId, int] = {}
    added = 0
    for message in messages:
        session_id = message.session_id
        if session_id not in counts:
            counts[session_id] = message_count(db, session_id)
        if message.index != counts[session_id]:
            continue
        key = message.source_key
        values = (
            next_number(db, "messages"),
            session_id,
            message.index,
            message.role.value,
            message.content,
            message.at_ns,
            calls_to_text(message.tool_calls),
            None if key is not None and has_source(db, session_id, key) else key,
        )
        db.execute(INSERT["messages"], sealed("messages", values))
        counts[session_id] += 1
        added += 1
    return added + sum(_annotation(db, annotation) for annotation in annotations)


def _annotation(db: apsw.Connection, annotation: Annotation) -> int:
    place = (
        annotation.session_id,
        annotation.checkpoint_id,
        annotation.number,
        annotation.revision,
    )
    query = (
        "SELECT 1 FROM annotations WHERE session_id=? AND checkpoint=? AND number=? AND revision=?"
    )
    if db.execute(query, place).fetchall():
        return 0
    said = (annotation.text, annotation.author, annotation.at_ns)
    row = sealed("annotations", (next_number(db, "annotations"), *place, *said))
    db.execute(INSERT["annotations"], row)
    return 1
