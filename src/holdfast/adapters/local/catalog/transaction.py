"""The writing side of the SQLite catalog: rows that become durable together."""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.adapters.local.catalog.rows import (
    CHECKPOINT_VALUES,
    SEALED_COLUMNS,
    checkpoint_from_row,
    checkpoint_to_row,
    checksum_of,
    operation_from_row,
    operation_to_row,
    seal_rows,
    seal_settings,
    session_to_row,
)
from holdfast.domain.checkpoints import Checkpoint, Kind, NewCheckpoint
from holdfast.domain.errors import InvalidIntent
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.ports.catalog import NewOperation


def _insert(table: str) -> str:
    columns = SEALED_COLUMNS[table]
    marks = ",".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks})"


def _next_sequence(table: str) -> str:
    """Above every number ever used, including those of deleted rows (I7)."""
    return (
        f"SELECT 1 + max((SELECT coalesce(max(sequence), 0) FROM {table}),"
        f" (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='{table}'))"
    )


_SESSION = f"SELECT {SEALED_COLUMNS['sessions']} FROM sessions WHERE id=?"
_INSERT = {table: _insert(table) for table in SEALED_COLUMNS}
_NEXT = {table: _next_sequence(table) for table in ("checkpoints", "operations")}


class SqliteTransaction:
    """See `holdfast.ports.catalog.CatalogTransaction` for the contract of each member."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.newest_operation: tuple[int, bytes] | None = None
        """Sequence number and checksum of the last operation added here."""
        self.changes: int | None = None
        self._settings_changed = False

    def add_session(self, session: Session) -> None:
        row = session_to_row(session)
        self._db.execute(_INSERT["sessions"], (*row, checksum_of("sessions", row)))

    def set_session_status(self, session_id: SessionId, status: SessionStatus) -> None:
        self._db.execute("UPDATE sessions SET status=? WHERE id=?", (status.value, session_id))
        seal_rows(self._db, "sessions", "id=?", session_id)

    def set_session_title(self, session_id: SessionId, title: str | None) -> None:
        self._db.execute("UPDATE sessions SET title=? WHERE id=?", (title, session_id))
        seal_rows(self._db, "sessions", "id=?", session_id)

    def set_head(self, session_id: SessionId, head: CheckpointId | None) -> None:
        # Called in every save, so the row is read and written once; `seal_rows` takes longer.
        for row in self._db.execute(_SESSION, (session_id,)).fetchall():
            changed = (*row[:5], head, *row[6:-1])
            seal = checksum_of("sessions", changed)
            self._db.execute(
                "UPDATE sessions SET head=?, checksum=? WHERE id=?", (head, seal, session_id)
            )

    def start_round(
        self, session_id: SessionId, number: int, *, approved: CheckpointId | None
    ) -> None:
        self._db.execute(
            "UPDATE sessions SET round=?, approved=? WHERE id=?", (number, approved, session_id)
        )
        seal_rows(self._db, "sessions", "id=?", session_id)

    def add_checkpoint(self, new: NewCheckpoint) -> Checkpoint:
        row = self._numbered("checkpoints", checkpoint_to_row(new))
        try:
            self._db.execute(_INSERT["checkpoints"], row)
        except apsw.ConstraintError as error:
            if "checkpoints.name" not in str(error):
                raise
            raise InvalidIntent(
                f"the session already has a checkpoint named {new.intent.checkpoint_name!r}",
                hint="choose another name",
            ) from None
        return checkpoint_from_row(row)

    def remove_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        below = "SELECT id FROM checkpoints WHERE parent=?"
        children = self._db.execute(below, (checkpoint_id,)).fetchall()
        self._db.execute(
            "UPDATE checkpoints SET restores_from=NULL WHERE parent=? AND kind=?",
            (checkpoint_id, Kind.RESTORE.value),
        )
        self._db.execute(
            "UPDATE checkpoints SET parent=(SELECT parent FROM checkpoints WHERE id=?)"
            " WHERE parent=?",
            (checkpoint_id, checkpoint_id),
        )
        for (child,) in children:
            seal_rows(self._db, "checkpoints", "id=?", child)
        approving = "SELECT id FROM sessions WHERE approved=?"
        approved = self._db.execute(approving, (checkpoint_id,)).fetchall()
        self._db.execute("UPDATE sessions SET approved=NULL WHERE approved=?", (checkpoint_id,))
        for (session_id,) in approved:
            seal_rows(self._db, "sessions", "id=?", session_id)
        self._db.execute("DELETE FROM checkpoints WHERE id=?", (checkpoint_id,))

    def replace_checkpoint(self, changed: Checkpoint) -> None:
        fixed = ("id", "session_id", "parent")
        fields = {name: getattr(changed, name) for name in NewCheckpoint.__dataclass_fields__}
        columns = dict(
            zip(
                CHECKPOINT_VALUES.split(", "),
                checkpoint_to_row(NewCheckpoint(**fields)),
                strict=True,
            )
        )
        assigned = {name: value for name, value in columns.items() if name not in fixed}
        assignments = ", ".join(f"{name}=?" for name in assigned)
        self._db.execute(
            f"UPDATE checkpoints SET {assignments} WHERE id=?", (*assigned.values(), changed.id)
        )
        seal_rows(self._db, "checkpoints", "id=?", changed.id)

    def add_operation(self, new: NewOperation) -> Operation:
        row = self._numbered("operations", operation_to_row(new))
        self._db.execute(_INSERT["operations"], row)
        self.newest_operation = (row[0], row[-1])
        return operation_from_row(row)

    def set_operation_note(self, sequence: int, note: str) -> None:
        self._db.execute("UPDATE operations SET note=? WHERE sequence=?", (note, sequence))
        seal_rows(self._db, "operations", "sequence=?", sequence)

    def set_setting(self, key: str, value_json: str | None) -> None:
        self._settings_changed = True
        if value_json is None:
            self._db.execute("DELETE FROM settings WHERE key=?", (key,))
        else:
            self._db.execute("INSERT OR REPLACE INTO settings VALUES (?,?)", (key, value_json))

    def set_current_session(self, session_id: SessionId) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO facts VALUES ('current_session', ?)", (session_id,)
        )
        self._settings_changed = True

    def finish(self) -> None:
        """Called last in the transaction: seal changes without an operation."""
        if self._settings_changed or self.newest_operation is None:
            self.changes = seal_settings(self._db)

    def _numbered(self, table: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        (found,) = self._db.execute(_NEXT[table]).fetchall()
        row = (found[0], *values)
        return (*row, checksum_of(table, row))
