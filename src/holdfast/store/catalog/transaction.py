"""The writing side of the SQLite catalog: rows that become durable together."""

from __future__ import annotations

import apsw

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import InvalidIntent
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.ports.catalog import NewCheckpoint, NewOperation
from holdfast.store.catalog.rows import (
    CHECKPOINT_VALUES,
    OPERATION_VALUES,
    checkpoint_from_row,
    checkpoint_to_row,
    operation_from_row,
    operation_to_row,
)


def _insert(table: str, columns: str) -> str:
    marks = ",".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) RETURNING sequence"


class SqliteTransaction:
    """See `holdfast.ports.catalog.CatalogTransaction` for the contract of each member."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def add_session(self, session: Session) -> None:
        row = (
            session.id,
            session.created_at_ns,
            session.status.value,
            session.title,
            session.agent,
            session.head,
            session.approved,
        )
        self._db.execute("INSERT INTO sessions VALUES (?,?,?,?,?,?,?)", row)

    def set_session_status(self, session_id: SessionId, status: SessionStatus) -> None:
        self._db.execute("UPDATE sessions SET status=? WHERE id=?", (status.value, session_id))

    def set_head(self, session_id: SessionId, head: CheckpointId | None) -> None:
        self._db.execute("UPDATE sessions SET head=? WHERE id=?", (head, session_id))

    def add_checkpoint(self, new: NewCheckpoint) -> Checkpoint:
        row = checkpoint_to_row(new)
        try:
            found = self._db.execute(_insert("checkpoints", CHECKPOINT_VALUES), row).fetchall()
        except apsw.ConstraintError as error:
            if "checkpoints.name" not in str(error):
                raise
            raise InvalidIntent(
                f"the session already has a checkpoint named {new.intent.checkpoint_name!r}",
                hint="choose another name",
            ) from None
        return checkpoint_from_row((found[0][0], *row))

    def remove_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._db.execute(
            "UPDATE checkpoints SET restores_from=NULL WHERE parent=? AND kind=?",
            (checkpoint_id, Kind.RESTORE.value),
        )
        self._db.execute(
            "UPDATE checkpoints SET parent=(SELECT parent FROM checkpoints WHERE id=?)"
            " WHERE parent=?",
            (checkpoint_id, checkpoint_id),
        )
        self._db.execute("DELETE FROM checkpoints WHERE id=?", (checkpoint_id,))

    def add_operation(self, new: NewOperation) -> Operation:
        row = operation_to_row(new)
        found = self._db.execute(_insert("operations", OPERATION_VALUES), row).fetchall()
        return operation_from_row((found[0][0], *row))

    def set_setting(self, key: str, value_json: str | None) -> None:
        if value_json is None:
            self._db.execute("DELETE FROM settings WHERE key=?", (key,))
        else:
            self._db.execute("INSERT OR REPLACE INTO settings VALUES (?,?)", (key, value_json))

    def set_current_session(self, session_id: SessionId) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO facts VALUES ('current_session', ?)", (session_id,)
        )
