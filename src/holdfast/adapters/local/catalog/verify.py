"""Verifying the SQLite catalog: file, schema, rows, and that the rows tell one story.

One function per thing that can be wrong; each yields what it found, in words. Nothing is changed.
The operation log never forgets, so it tells which checkpoints there have to be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import apsw

from holdfast.adapters.local.catalog.migrations import migrate
from holdfast.adapters.local.catalog.rows import unsealed_rows

_MOST_PROBLEMS = 20
_LARGEST_SEQUENCE = 1 << 53
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"


def problems(db: apsw.Connection) -> Iterator[str]:
    """Every problem there is."""
    yield from found_problems(db, CHECKS)


def found_problems(
    db: apsw.Connection, checks: tuple[Callable[[apsw.Connection], Iterator[str]], ...]
) -> Iterator[str]:
    """What some checks find. What cannot even be read is one, and ends its own check only."""
    found: set[str] = set()
    for check in checks:
        try:
            for problem in check(db):
                if problem not in found:
                    found.add(problem)
                    yield problem
        except (apsw.Error, ValueError, TypeError) as error:
            if str(error) not in found:
                found.add(str(error))
                yield str(error)


def file_is_whole(db: apsw.Connection) -> Iterator[str]:
    for (text,) in db.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
        if text != "ok":
            yield str(text)


def schema_is_ours(db: apsw.Connection) -> Iterator[str]:
    if db.execute(SCHEMA).fetchall() != schema_made_by(migrate):
        yield "the schema is not the one that Holdfast made"


@cache
def schema_made_by(migrate: Callable[[apsw.Connection], None]) -> list[tuple[Any, ...]]:
    """What a new database has; it is the same each time."""
    with contextlib.closing(apsw.Connection(":memory:")) as new:
        migrate(new)
        return new.execute(SCHEMA).fetchall()


def rows_match_their_checksums(db: apsw.Connection) -> Iterator[str]:
    yield from unsealed_rows(db)


def checkpoints_have_operations(db: apsw.Connection) -> Iterator[str]:
    orphans = (
        "SELECT c.id FROM checkpoints c LEFT JOIN operations o ON o.checkpoint=c.id"
        " WHERE o.sequence IS NULL"
    )
    for (checkpoint_id,) in db.execute(orphans):
        yield f"checkpoint {checkpoint_id} has no operation (I3)"


def logged_checkpoints_exist(db: apsw.Connection) -> Iterator[str]:
    lost = (
        "SELECT DISTINCT o.checkpoint FROM operations o WHERE o.checkpoint IS NOT NULL"
        " AND o.kind NOT IN ('delete', 'prune', 'purge', 'lost')"
        " AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.id=o.checkpoint)"
        " AND NOT EXISTS (SELECT 1 FROM operations g WHERE g.checkpoint=o.checkpoint"
        " AND g.kind IN ('delete', 'prune', 'purge', 'lost'))"
    )
    for (checkpoint_id,) in db.execute(lost):
        yield f"checkpoint {checkpoint_id} was made and never dropped, but is gone (I3)"


def heads_exist(db: apsw.Connection) -> Iterator[str]:
    heads = (
        "SELECT s.id, s.head FROM sessions s LEFT JOIN checkpoints c ON c.id=s.head"
        " WHERE s.head IS NOT NULL AND c.id IS NULL"
    )
    for session_id, head in db.execute(heads):
        yield f"session {session_id} stands on checkpoint {head}, which does not exist (I3)"


def sessions_exist(db: apsw.Connection) -> Iterator[str]:
    for table in ("checkpoints", "operations"):
        lost = f"SELECT DISTINCT session_id FROM {table} EXCEPT SELECT id FROM sessions"
        for (session_id,) in db.execute(lost):
            yield f"{table} name the session {session_id!a}, which does not exist (I3)"


def log_is_unbroken(db: apsw.Connection) -> Iterator[str]:
    ((count, newest),) = db.execute("SELECT count(*), coalesce(max(sequence), 0) FROM operations")
    if count != newest:
        yield f"entries of the operation log are missing: it has {count} of {newest} (I7)"
    for table in ("checkpoints", "operations"):
        query = (
            f"SELECT (SELECT coalesce(max(sequence), 0) FROM {table}),"
            f" (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='{table}')"
        )
        ((used, given),) = _numbers(db, query)
        if not used <= given <= _LARGEST_SEQUENCE:
            yield f"the next sequence number of {table} is not known (I7)"


def _numbers(db: apsw.Connection, query: str) -> list[tuple[int, ...]]:
    rows: list[Any] = db.execute(query).fetchall()
    return [tuple(int(number) for number in row) for row in rows]


CHECKS: tuple[Callable[[apsw.Connection], Iterator[str]], ...] = (
    file_is_whole,
    schema_is_ours,
    rows_match_their_checksums,
    checkpoints_have_operations,
    logged_checkpoints_exist,
    heads_exist,
    sessions_exist,
    log_is_unbroken,
)
