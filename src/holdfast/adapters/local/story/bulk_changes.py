"""Changes of many story rows in one transaction: rows of another story, or a replaced text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw

from holdfast.adapters.local.story.rows import (
    COLUMNS,
    INSERT,
    calls_to_text,
    has_source,
    message_count,
    next_number,
    require_sealed,
    sealed,
)
from holdfast.domain.ids import SessionId
from holdfast.domain.messages import Annotation, Message
from holdfast.domain.text_replacement import TextReplacement


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


_TEXTS = {
    "messages": ("content",),
    "annotations": ("text", "author"),
    "activities": ("reason", "outcome"),
}
_JSON = {"messages": ("tool_calls",), "activities": ("paths",)}
_WORDS = {"activities": "edits"}


def replace_text(
    db: apsw.Connection, replacement: TextReplacement, diff: Callable[[bytes], bytes]
) -> Mapping[str, int]:
    """How many messages, annotations and edits said something else before."""
    counts = Counter[str]()
    for table in _TEXTS:
        names = COLUMNS[table].split(", ")
        changed = []
        for row in db.execute(f"SELECT {COLUMNS[table]} FROM {table}"):
            values = dict(zip(names[:-1], require_sealed(table, row)[:-1], strict=True))
            new = tuple(_replaced(table, values, replacement, diff).values())
            if new != row[:-1]:
                changed.append(sealed(table, new))
        for row in changed:
            db.execute(INSERT[table].replace("INSERT", "INSERT OR REPLACE", 1), row)
        if changed:
            counts[_WORDS.get(table, table)] = len(changed)
    return counts


def _replaced(
    table: str,
    values: dict[str, Any],
    replacement: TextReplacement,
    diff: Callable[[bytes], bytes],
) -> dict[str, Any]:
    changed = dict(values)
    for name in _TEXTS[table]:
        if values[name] is not None:
            changed[name] = replacement.text(values[name])
    for name in _JSON.get(table, ()):
        changed[name] = replacement.json(values[name])
    if values.get("diff") is not None:
        changed["diff"] = diff(values["diff"])
    return changed
