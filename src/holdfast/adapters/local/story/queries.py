"""Small questions to a story's database, and the facts that are noted in it."""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.adapters.local.story.rows import COLUMNS, INSERT, require_sealed, sealed
from holdfast.domain.ids import SessionId


def message_count(db: apsw.Connection, session_id: SessionId) -> int:
    newest = asked(db, "SELECT max(position) FROM messages WHERE session_id=?", session_id)
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
    """Above every number ever given out, also those of rows that are gone."""
    query = (
        f"SELECT max((SELECT coalesce(max({column}), 0) FROM {table}),"
        f" (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='{table}'))"
    )
    return (asked(db, query) or 0) + 1


def asked(db: apsw.Connection, query: str, *values: Any) -> int | None:
    rows: list[Any] = db.execute(query, values).fetchall()
    return None if rows[0][0] is None else int(rows[0][0])
