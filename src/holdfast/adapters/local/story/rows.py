"""Story rows to values and back, and changes of many rows; the one place with the column order.

Each row ends with a checksum of its table name and its other columns, like the catalog's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import apsw

from holdfast.adapters.local.catalog.rows import checksum_of, is_sealed
from holdfast.domain.ids import SessionId
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.purges import TextReplacement
from holdfast.domain.story import (
    Activity,
    ActivityKind,
    ActivityStatus,
    Annotation,
    Marks,
    Message,
    NewActivity,
    Role,
    Rollback,
    Stretch,
)
from holdfast.ports.story import NewMessage

COLUMNS = {
    "messages": (
        "sequence, session_id, position, role, content, at_ns, tool_calls, source_key, checksum"
    ),
    "annotations": (
        "sequence, session_id, checkpoint, number, revision, text, author, at_ns, checksum"
    ),
    "activities": (
        "number, session_id, kind, reason, checkpoint, started_at_ns, owner, paths, message_index,"
        " status, ended_at_ns, outcome, diff, checksum"
    ),
    "rollbacks": "sequence, session_id, operation, record, through, before, after, checksum",
    "facts": "session_id, name, value, checksum",
}
"""Every table; all rows have a checksum, which is the last column."""

INSERT = {
    table: f"INSERT INTO {table} ({columns}) VALUES ({','.join('?' * (columns.count(',') + 1))})"
    for table, columns in COLUMNS.items()
}

_ACTIVITY = attrgetter("session_id", "kind.value", "reason", "checkpoint", "started_at_ns", "owner")
_ANNOTATION = attrgetter(
    "session_id", "checkpoint_id", "number", "revision", "text", "author", "at_ns"
)

# Conversations are long, so what most messages share is computed once.
_ROLES = {role.value: role for role in Role}
_NO_CALLS = json.dumps([])


def sealed(table: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row to be written, with only the types that it is read with: the checksum of an enum member
    would never match the text that is read back."""
    plain = tuple(map(_plain, values))
    return (*plain, checksum_of(table, plain))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else value


def require_sealed(table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    if not is_sealed(table, row):
        raise ValueError(f"a row of {table} ({row[0]!a}) does not match its checksum")
    return row


def message_to_row(
    number: int,
    session_id: SessionId,
    position: int,
    message: Message | NewMessage,
    source_key: str | None,
) -> tuple[Any, ...]:
    calls = [call if isinstance(call, str) else dict(call) for call in message.tool_calls]
    said = (message.role.value, message.content, message.at_ns, json.dumps(calls))
    return sealed("messages", (number, session_id, position, *said, source_key))


def message_from_row(row: tuple[Any, ...], rolled_back_by: int | None = None) -> Message:
    _, session_id, position, role, content, at_ns, calls, source_key, _ = row
    return Message(
        SessionId(session_id),
        position,
        _ROLES[role],
        content,
        at_ns,
        () if calls == _NO_CALLS else tuple(json.loads(calls)),
        source_key,
        rolled_back_by,
    )


def annotation_from_row(row: tuple[Any, ...]) -> Annotation:
    return Annotation(*require_sealed("annotations", row)[:-1])


def activity_to_row(new: NewActivity) -> tuple[Any, ...]:
    """Without its number, in its initial state."""
    paths = json.dumps([to_text(path) for path in new.paths])
    unended = (ActivityStatus.OPEN.value, None, None, None)
    return (*_ACTIVITY(new), paths, new.message_index, *unended)


def activity_from_row(row: tuple[Any, ...]) -> Activity:
    require_sealed("activities", row)
    paths = tuple(from_text(path) for path in json.loads(row[7]))
    begun = (*row[:2], ActivityKind(row[2]), *row[3:7], paths, row[8])
    fields = (*begun, ActivityStatus(row[9]), *row[10:12], row[12] is not None)
    return Activity(*fields)


def rollback_to_row(session_id: SessionId, rollback: Rollback) -> tuple[Any, ...]:
    marks = (_marks_to_text(rollback.before), _marks_to_text(rollback.after))
    return (session_id, rollback.operation, rollback.record, rollback.through, *marks)


def rollback_from_row(row: tuple[Any, ...]) -> Rollback:
    _, _, operation, record, through, before, after, _ = require_sealed("rollbacks", row)
    return Rollback(operation, record, through, _marks(before), _marks(after))


def _marks_to_text(marks: Marks) -> str:
    return json.dumps([[s.first, s.last, s.operation] for s in marks], separators=(",", ":"))


def _marks(text: str) -> Marks:
    return tuple(Stretch(*numbers) for numbers in json.loads(text))


def message_count(db: apsw.Connection, session_id: SessionId) -> int:
    newest = query_number(db, "SELECT max(position) FROM messages WHERE session_id=?", session_id)
    return 0 if newest is None else newest + 1


def has_source(db: apsw.Connection, session_id: SessionId, key: str) -> bool:
    query = "SELECT 1 FROM messages WHERE session_id=? AND source_key=?"
    return bool(db.execute(query, (session_id, key)).fetchall())


def fact_of(db: apsw.Connection, session_id: SessionId, name: str) -> str | None:
    query = f"SELECT {COLUMNS['facts']} FROM facts WHERE session_id=? AND name=?"
    rows = db.execute(query, (session_id, name)).fetchall()
    return str(require_sealed("facts", rows[0])[2]) if rows else None


def set_fact(db: apsw.Connection, session_id: SessionId, name: str, value: str) -> None:
    insert = INSERT["facts"].replace("INSERT", "INSERT OR REPLACE", 1)
    db.execute(insert, sealed("facts", (session_id, name, value)))


def next_number(db: apsw.Connection, table: str, column: str = "sequence") -> int:
    """Above every number ever used, including those of deleted rows."""
    query = (
        f"SELECT max((SELECT coalesce(max({column}), 0) FROM {table}),"
        f" (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='{table}'))"
    )
    return (query_number(db, query) or 0) + 1


def query_number(db: apsw.Connection, query: str, *values: Any) -> int | None:
    rows: list[Any] = db.execute(query, values).fetchall()
    return None if rows[0][0] is None else int(rows[0][0])


def import_rows(
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
        if key is not None and has_source(db, session_id, key):
            key = None
        number = next_number(db, "messages")
        row = message_to_row(number, session_id, message.index, message, key)
        db.execute(INSERT["messages"], row)
        counts[session_id] += 1
        added += 1
    return added + sum(_annotation(db, annotation) for annotation in annotations)


def _annotation(db: apsw.Connection, annotation: Annotation) -> int:
    values = _ANNOTATION(annotation)
    place = values[:4]
    query = (
        "SELECT 1 FROM annotations WHERE session_id=? AND checkpoint=? AND number=? AND revision=?"
    )
    if db.execute(query, place).fetchall():
        return 0
    row = sealed("annotations", (next_number(db, "annotations"), *values))
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
    """Returns how many messages, annotations and edits were changed."""
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
