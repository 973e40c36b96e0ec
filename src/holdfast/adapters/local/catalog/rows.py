"""Catalog rows to values and back, and their checksums; the one place that knows the column order.

Each session, checkpoint and operation ends with a checksum of its table and of its other columns,
compared on every read, so that a changed byte is damage and never a different history (RL-4).
Settings and facts are few: one row of `seals` covers all of them, and counts the transactions that
left no operation, so that none can vanish unnoticed either. Checksums are kept right in the same
transaction as the rows themselves.
"""

from __future__ import annotations

import json
from typing import Any

import apsw

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind, NewCheckpoint
from holdfast.domain.ids import DIGEST_BYTES, CheckpointId, Digest, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.catalog import NewOperation

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
"""Tables whose rows carry a checksum, which is the last column."""

CHECKSUM_BYTES = 16


def checksum_of(table: str, values: tuple[Any, ...]) -> bytes:
    """Of a row without its checksum, in the encoding that docs/design/formats.md defines: what
    Python writes for a tuple in ASCII, the same in every version."""
    return digest_of(f"{table}{values!a}".encode())[:CHECKSUM_BYTES]


def is_sealed(table: str, row: tuple[Any, ...]) -> bool:
    return bool(row[-1] == checksum_of(table, row[:-1]))


def _require_sealed(table: str, row: tuple[Any, ...]) -> None:
    if not is_sealed(table, row):
        raise ValueError(f"a row of {table} ({row[0]!a}) does not match its checksum")


def session_from_row(row: tuple[Any, ...]) -> Session:
    _require_sealed("sessions", row)
    identifier, created_at_ns, status, title, agent, head, approved, round_number, _ = row
    return Session(
        SessionId(identifier),
        created_at_ns,
        SessionStatus(status),
        title,
        agent,
        head,
        approved,
        round_number,
    )


def session_to_row(session: Session) -> tuple[Any, ...]:
    return (
        session.id,
        session.created_at_ns,
        session.status.value,
        session.title,
        session.agent,
        session.head,
        session.approved,
        session.round,
    )


def checkpoint_to_row(new: NewCheckpoint) -> tuple[Any, ...]:
    intent = new.intent
    calls = [call if isinstance(call, str) else dict(call) for call in intent.tool_calls]
    return (
        new.id,
        new.session_id,
        new.parent,
        new.kind.value,
        new.created_at_ns,
        new.tree,
        intent.reasoning,
        intent.goal_id,
        intent.task_id,
        json.dumps(calls),
        float(intent.confidence),
        intent.checkpoint_name,
        json.dumps(intent.tags),
        new.files,
        new.size_bytes,
        new.changed.added,
        new.changed.modified,
        new.changed.removed,
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
    sequence, identifier, session_id, parent, kind, created_at_ns, tree = row[:7]
    reasoning, goal_id, task_id, tool_calls, confidence, name, tags = row[7:14]
    files, size_bytes, added, modified, removed, report, restores_from, partial = row[14:22]
    message_index, tool_use_id, round_number, components = row[22:26]
    if not isinstance(tree, bytes) or len(tree) != DIGEST_BYTES:
        raise ValueError(f"checkpoint {identifier} names no tree")
    return Checkpoint(
        sequence=sequence,
        id=CheckpointId(identifier),
        session_id=SessionId(session_id),
        parent=None if parent is None else CheckpointId(parent),
        kind=Kind(kind),
        created_at_ns=created_at_ns,
        tree=Digest(tree),
        intent=SnapshotIntent(
            reasoning,
            goal_id,
            task_id,
            tuple(json.loads(tool_calls)),
            confidence,
            name,
            tuple(json.loads(tags)),
        ),
        files=files,
        size_bytes=size_bytes,
        changed=ChangeCounts(added, modified, removed),
        report=None if report is None else Digest(report),
        restores_from=None if restores_from is None else CheckpointId(restores_from),
        partial=bool(partial),
        message_index=message_index,
        tool_use_id=tool_use_id,
        round=round_number,
        components=None if components is None else Digest(components),
    )


def operation_to_row(new: NewOperation) -> tuple[Any, ...]:
    return (
        new.kind.value,
        new.session_id,
        new.at_ns,
        new.checkpoint,
        new.safety,
        new.head_before,
        new.reverses,
        new.token,
        new.note,
    )


def operation_from_row(row: tuple[Any, ...]) -> Operation:
    _require_sealed("operations", row)
    sequence, kind, session_id, at_ns, checkpoint, safety, head_before, reverses = row[:8]
    token, note = row[8:10]
    return Operation(
        sequence,
        OperationKind(kind),
        SessionId(session_id),
        at_ns,
        checkpoint,
        safety,
        head_before,
        reverses,
        token,
        note,
    )


_SETTINGS = "settings"


def seal_rows(db: apsw.Connection, table: str, where: str = "1", *values: Any) -> None:
    """Give the chosen rows of a table the checksum of what they now hold."""
    seal_columns(db, table, SEALED_COLUMNS[table], where, *values)


def seal_columns(
    db: apsw.Connection, table: str, columns: str, where: str = "1", *values: Any
) -> None:
    """The same for a table that has, or had, these columns; the checksum is the last."""
    key = columns.partition(",")[0]
    rows = db.execute(f"SELECT {columns} FROM {table} WHERE {where}", values).fetchall()
    for row in rows:
        update = f"UPDATE {table} SET checksum=? WHERE {key}=?"
        db.execute(update, (checksum_of(table, row[:-1]), row[0]))


def seal_settings(db: apsw.Connection) -> int:
    """Cover settings and facts as they are now; the number of changes so far."""
    query = "SELECT changes FROM seals WHERE name=?"
    found: list[Any] = db.execute(query, (_SETTINGS,)).fetchall()
    changes = int(found[0][0]) + 1 if found else 0
    db.execute(
        "INSERT OR REPLACE INTO seals VALUES (?,?,?)",
        (_SETTINGS, changes, _settings_checksum(db, changes)),
    )
    return changes


def unlogged_changes(db: apsw.Connection) -> int:
    """How many transactions left no operation; `ValueError` when settings were tampered with."""
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
