"""Checksums of catalog rows, kept right in the same transaction as the rows themselves.

Sessions, checkpoints and operations carry one each. Settings and facts are few: one row of `seals`
covers all of them, and counts the transactions that left no operation, so that none can vanish
unnoticed either.
"""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.adapters.local.catalog.rows import (
    CHECKSUM_BYTES,
    SEALED_COLUMNS,
    checksum_of,
    is_sealed,
)
from holdfast.domain.trees.objects import digest_of

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


def unsealed_rows(db: apsw.Connection) -> list[str]:
    """Every row that is not as it was written."""
    found = []
    for table, columns in SEALED_COLUMNS.items():
        for row in db.execute(f"SELECT {columns} FROM {table}"):
            if not is_sealed(table, row):
                found.append(f"a row of {table} ({row[0]!a}) does not match its checksum")
    try:
        unlogged_changes(db)
    except ValueError as error:
        found.append(str(error))
    return found


def settings_checksum(changes: int, settings: dict[str, str], facts: dict[str, str]) -> bytes:
    rows = (sorted(settings.items()), sorted(facts.items()))
    return digest_of(f"{changes}{rows[0]!a}{rows[1]!a}".encode())[:CHECKSUM_BYTES]


def _settings_checksum(db: apsw.Connection, changes: int) -> bytes:
    settings: list[Any] = db.execute("SELECT key, value FROM settings").fetchall()
    facts: list[Any] = db.execute("SELECT key, value FROM facts").fetchall()
    return settings_checksum(changes, dict(settings), dict(facts))
