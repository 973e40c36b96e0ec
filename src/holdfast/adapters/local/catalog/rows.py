"""Catalog rows to values and back, and their checksums; the one place that knows the column order.

Each session, checkpoint and operation ends with a checksum of its table name and its other columns.
It is compared on every read, so that a changed byte is damage and never a different history (RL-4).
Settings and facts are few: one row of `seals` covers all of them, and counts the transactions
without an operation, so that none can vanish unnoticed either. Checksums are updated in the same
transaction as the rows themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.domain.checkpoints import (
    ChangeCounts,
    Checkpoint,
    Kind,
    Milestone,
    NewCheckpoint,
)
from holdfast.domain.ids import DIGEST_BYTES, CheckpointId, Digest
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.catalog import NewOperation

if TYPE_CHECKING:
    from holdfast.domain.timeline.timeline import Outline

SESSION_VALUES = "id, created_at_ns, status, title, agent, head, approved, round"
SESSION_COLUMNS = f"{SESSION_VALUES}, checksum"
CHECKPOINT_VALUES = (
    "id, session_id, parent, kind, created_at_ns, tree, reasoning, goal_id, task_id, tool_calls,"
    " confidence, name, tags, files, size_bytes, added, modified, removed, report, restores_from,"
    " partial, message_index, tool_use_id, round, components"
)
CHECKPOINT_COLUMNS = f"sequence, {CHECKPOINT_VALUES}, checksum"
OPERATION_VALUES = "kind, session_id, at_ns, checkpoint, safety, head_before, reverses, token, note"
OPERATION_COLUMNS = f"sequence, {OPERATION_VALUES}, checksum"

SEALED_COLUMNS = {
    "sessions": SESSION_COLUMNS,
    "checkpoints": CHECKPOINT_COLUMNS,
    "operations": OPERATION_COLUMNS,
}
"""Tables whose rows have a checksum, which is the last column."""

CHECKSUM_BYTES = 16


def checksum_of(table: str, values: tuple[Any, ...]) -> bytes:
    """The checksum of a row without its checksum column, in the encoding that
    docs/design/formats.md defines: Python's ASCII form of a tuple, the same in every version."""
    return digest_of(f"{table}{values!a}".encode())[:CHECKSUM_BYTES]


def is_sealed(table: str, row: tuple[Any, ...]) -> bool:
    return bool(row[-1] == checksum_of(table, row[:-1]))


def _require_sealed(table: str, row: tuple[Any, ...]) -> None:
    if not is_sealed(table, row):
        raise ValueError(f"a row of {table} ({row[0]!a}) does not match its checksum")


_KINDS = {kind.value: kind for kind in Kind}
_OPERATION_KINDS = {kind.value: kind for kind in OperationKind}
_SESSION = attrgetter(*SESSION_VALUES.replace("status", "status.value").split(", "))
_OPERATION = attrgetter(*OPERATION_VALUES.replace("kind", "kind.value").split(", "))
_IDENTITY = attrgetter("id", "session_id", "parent", "kind.value", "created_at_ns", "tree")
_SIZES = attrgetter("files", "size_bytes", "changed.added", "changed.modified", "changed.removed")


def session_from_row(row: tuple[Any, ...]) -> Session:
    _require_sealed("sessions", row)
    fields = (*row[:2], SessionStatus(row[2]), *row[3:-1])
    return Session(*fields)


def session_to_row(session: Session) -> tuple[Any, ...]:
    return tuple(_SESSION(session))


def checkpoint_to_row(new: NewCheckpoint) -> tuple[Any, ...]:
    intent = new.intent
    calls = [call if isinstance(call, str) else dict(call) for call in intent.tool_calls]
    return (
        *_IDENTITY(new),
        intent.reasoning,
        intent.goal_id,
        intent.task_id,
        json.dumps(calls),
        float(intent.confidence),
        intent.checkpoint_name,
        json.dumps(intent.tags),
        *_SIZES(new),
        new.report,
        new.restores_from,
        int(new.partial),
        new.message_index,
        new.tool_use_id,
        new.round,
        new.components,
    )


def checkpoint_from_row(row: tuple[Any, ...]) -> Checkpoint:
    _require_sealed("checkpoints", row)
    kind, created_at_ns, tree = row[4:7]
    reasoning, goal_id, task_id, tool_calls, confidence, name, tags = row[7:14]
    if not isinstance(tree, bytes) or len(tree) != DIGEST_BYTES:
        raise ValueError(f"checkpoint {row[1]} names no tree")
    calls, labels = _items(tool_calls), _items(tags)
    intent = SnapshotIntent(reasoning, goal_id, task_id, calls, confidence, name, labels)
    identity = (*row[:4], _KINDS[kind], created_at_ns, Digest(tree))
    sizes = (*row[14:16], ChangeCounts(*row[16:19]))
    fields = (*identity, intent, *sizes, *row[19:21], bool(row[21]), *row[22:-1])
    return Checkpoint(*fields)


def _items(text: str) -> tuple[Any, ...]:
    return () if text == "[]" else tuple(json.loads(text))  # most rows have none


def operation_to_row(new: NewOperation) -> tuple[Any, ...]:
    return tuple(_OPERATION(new))


def operation_from_row(row: tuple[Any, ...]) -> Operation:
    _require_sealed("operations", row)
    return Operation(row[0], _OPERATION_KINDS[row[1]], *row[2:-1])


_SETTINGS = "settings"


def seal_rows(db: apsw.Connection, table: str, where: str = "1", *values: Any) -> None:
    """Update the checksum of the chosen rows of a table."""
    seal_columns(db, table, SEALED_COLUMNS[table], where, *values)


def seal_columns(
    db: apsw.Connection, table: str, columns: str, where: str = "1", *values: Any
) -> None:
    """The same for a table with these columns, with the checksum last."""
    key = columns.partition(",")[0]
    rows = db.execute(f"SELECT {columns} FROM {table} WHERE {where}", values).fetchall()
    for row in rows:
        update = f"UPDATE {table} SET checksum=? WHERE {key}=?"
        db.execute(update, (checksum_of(table, row[:-1]), row[0]))


def seal_settings(db: apsw.Connection) -> int:
    """Update the checksum of settings and facts; returns the number of changes so far."""
    query = "SELECT changes FROM seals WHERE name=?"
    found: list[Any] = db.execute(query, (_SETTINGS,)).fetchall()
    changes = int(found[0][0]) + 1 if found else 0
    db.execute(
        "INSERT OR REPLACE INTO seals VALUES (?,?,?)",
        (_SETTINGS, changes, _settings_checksum(db, changes)),
    )
    return changes


def unlogged_changes(db: apsw.Connection) -> int:
    """How many transactions had no operation; `ValueError` if settings were tampered with."""
    query = "SELECT changes, checksum FROM seals WHERE name=?"
    found: list[Any] = db.execute(query, (_SETTINGS,)).fetchall()
    if not found or found[0][1] != _settings_checksum(db, found[0][0]):
        raise ValueError("settings or facts do not match their checksum")
    return int(found[0][0])


def settings_checksum(changes: int, settings: dict[str, str], facts: dict[str, str]) -> bytes:
    rows = (sorted(settings.items()), sorted(facts.items()))
    return digest_of(f"{changes}{rows[0]!a}{rows[1]!a}".encode())[:CHECKSUM_BYTES]


def _settings_checksum(db: apsw.Connection, changes: int) -> bytes:
    settings: list[Any] = db.execute("SELECT key, value FROM settings").fetchall()
    facts: list[Any] = db.execute("SELECT key, value FROM facts").fetchall()
    return settings_checksum(changes, dict(settings), dict(facts))


_LONGEST_REASON = 400
OUTLINE = (
    "SELECT sequence, id, parent, kind, created_at_ns,"
    f" substr(reasoning, 1, {_LONGEST_REASON}), name, confidence, added, modified, removed,"
    " restores_from, partial, message_index, tool_use_id, round,"
    f" CASE WHEN kind='{Kind.RESTORE.value}' THEN tool_calls END FROM checkpoints"
)
MILESTONE = "SELECT sequence, id, kind, message_index FROM checkpoints"

_MAYBE_TEXT, _MAYBE_NUMBER = (str, NoneType), (int, NoneType)
_TYPES: tuple[type | tuple[type, ...], ...] = (
    *(int, str, _MAYBE_TEXT, str, int, str, _MAYBE_TEXT, float, int, int, int),
    *(_MAYBE_TEXT, int, _MAYBE_NUMBER, _MAYBE_TEXT, int, _MAYBE_TEXT),
)
"""Damage can also change a value's type, and views rely on the types."""


def outline_reader() -> Callable[[tuple[Any, ...]], Outline]:
    """Outlines are not verified with their checksums, which would take longer than reading them. A
    user reaches the checkpoint itself by its id, and that is verified."""
    from holdfast.domain.restore.selections import (
        selected_in,  # late, like the next: no save needs it
    )
    from holdfast.domain.timeline.timeline import Outline

    def read(row: tuple[Any, ...]) -> Outline:
        if not all(map(isinstance, row, _TYPES)):
            raise ValueError(f"checkpoint {row[1]!a} has a value of the wrong type")
        selected = None if row[16] is None else selected_in(json.loads(row[16]), row[5])
        return Outline._make(
            (*row[:3], _KINDS[row[3]], *row[4:12], bool(row[12]), *row[13:16], selected)
        )

    return read


def milestone_from_row(row: tuple[Any, ...]) -> Milestone:
    sequence, identifier, kind, message_index = row
    if not isinstance(identifier, str) or not isinstance(message_index, _MAYBE_NUMBER):
        raise ValueError(f"checkpoint {identifier!a} has a value of the wrong type")
    return Milestone(sequence, CheckpointId(identifier), _KINDS[kind], message_index)
