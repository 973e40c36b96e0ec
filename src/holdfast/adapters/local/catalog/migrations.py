"""The catalog's schema as a list of named steps; each commits together with its record.

A store is migrated when it is opened, under its lock. Steps are only ever added. A store that
records a step this list does not have was written by a later Holdfast and is left untouched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import apsw

from holdfast.adapters.local.catalog.rows import checksum_of, is_sealed, seal_columns, seal_settings
from holdfast.domain.errors import NewerStore, StoreDamaged
from holdfast.values.classes import NamedTuple


class Migration(NamedTuple):
    """`fill` computes values that SQL cannot, in the same transaction."""

    name: str
    script: str
    fill: Callable[[apsw.Connection], None] | None = None


_FIRST_SEALED = {
    "sessions": "id, created_at_ns, status, title, agent, head, approved, checksum",
    "checkpoints": (
        "sequence, id, session_id, parent, kind, created_at_ns, tree, reasoning, goal_id, task_id,"
        " tool_calls, confidence, name, tags, files, size_bytes, added, modified, removed, report,"
        " restores_from, partial, checksum"
    ),
    "operations": (
        "sequence, kind, session_id, at_ns, checkpoint, safety, head_before, reverses, token,"
        " checksum"
    ),
}
"""The columns when rows got their checksums; a step describes the tables of its own time."""

_WIDER = {
    "sessions": "id, created_at_ns, status, title, agent, head, approved, round, checksum",
    "checkpoints": (
        "sequence, id, session_id, parent, kind, created_at_ns, tree, reasoning, goal_id, task_id,"
        " tool_calls, confidence, name, tags, files, size_bytes, added, modified, removed, report,"
        " restores_from, partial, message_index, tool_use_id, round, components, checksum"
    ),
    "operations": (
        "sequence, kind, session_id, at_ns, checkpoint, safety, head_before, reverses, token, note,"
        " checksum"
    ),
}
"""The columns since step 0004."""


def _seal_everything(db: apsw.Connection) -> None:
    for table, columns in _FIRST_SEALED.items():
        seal_columns(db, table, columns)
    seal_settings(db)


def _seal_wider_rows(db: apsw.Connection) -> None:
    """A row that did not match its checksum before the step must not get a valid one."""
    for table, old in _FIRST_SEALED.items():
        new = _WIDER[table].split(", ")
        kept = [new.index(column) for column in old.split(", ")]
        rows = db.execute(f"SELECT {_WIDER[table]} FROM {table}").fetchall()
        for row in rows:
            if is_sealed(table, tuple(row[place] for place in kept)):
                update = f"UPDATE {table} SET checksum=? WHERE {new[0]}=?"
                db.execute(update, (checksum_of(table, row[:-1]), row[0]))


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "0001-sessions-checkpoints-operations",
        """
        CREATE TABLE sessions (
          id TEXT PRIMARY KEY,
          created_at_ns INTEGER NOT NULL,
          status TEXT NOT NULL,
          title TEXT,
          agent TEXT,
          head TEXT,
          approved TEXT
        ) WITHOUT ROWID;
        CREATE TABLE checkpoints (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          id TEXT NOT NULL UNIQUE,
          session_id TEXT NOT NULL REFERENCES sessions(id),
          parent TEXT,
          kind TEXT NOT NULL,
          created_at_ns INTEGER NOT NULL,
          tree BLOB NOT NULL,
          reasoning TEXT NOT NULL,
          goal_id TEXT,
          task_id TEXT,
          tool_calls TEXT NOT NULL,
          confidence REAL NOT NULL,
          name TEXT,
          tags TEXT NOT NULL,
          files INTEGER NOT NULL,
          size_bytes INTEGER NOT NULL,
          added INTEGER NOT NULL,
          modified INTEGER NOT NULL,
          removed INTEGER NOT NULL,
          report BLOB,
          restores_from TEXT,
          partial INTEGER NOT NULL
        );
        CREATE UNIQUE INDEX checkpoint_names ON checkpoints(session_id, name)
          WHERE name IS NOT NULL;
        CREATE INDEX checkpoint_history ON checkpoints(session_id, sequence);
        CREATE INDEX checkpoint_children ON checkpoints(parent);
        CREATE TABLE operations (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          kind TEXT NOT NULL,
          session_id TEXT NOT NULL REFERENCES sessions(id),
          at_ns INTEGER NOT NULL,
          checkpoint TEXT,
          safety TEXT,
          head_before TEXT,
          reverses INTEGER,
          token TEXT UNIQUE
        );
        CREATE INDEX operation_history ON operations(session_id, sequence);
        CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        """,
    ),
    Migration(
        "0002-row-checksums",
        """
        ALTER TABLE sessions ADD COLUMN checksum BLOB;
        ALTER TABLE checkpoints ADD COLUMN checksum BLOB;
        ALTER TABLE operations ADD COLUMN checksum BLOB;
        CREATE TABLE seals (
          name TEXT PRIMARY KEY,
          changes INTEGER NOT NULL,
          checksum BLOB NOT NULL
        ) WITHOUT ROWID;
        """,
        fill=_seal_everything,
    ),
    Migration(
        "0003-checkpoints-by-kind",
        "CREATE INDEX checkpoint_kinds ON checkpoints(session_id, kind, created_at_ns);",
    ),
    Migration(
        "0004-conversation-rounds-components",
        # Tables are rebuilt, so that a row's fields are on disk in column order.
        """
        CREATE TABLE wider_sessions (
          id TEXT PRIMARY KEY,
          created_at_ns INTEGER NOT NULL,
          status TEXT NOT NULL,
          title TEXT,
          agent TEXT,
          head TEXT,
          approved TEXT,
          round INTEGER NOT NULL,
          checksum BLOB
        ) WITHOUT ROWID;
        INSERT INTO wider_sessions
          SELECT id, created_at_ns, status, title, agent, head, approved, 1, checksum
          FROM sessions;
        DROP TABLE sessions;
        ALTER TABLE wider_sessions RENAME TO sessions;
        CREATE TABLE wider_checkpoints (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          id TEXT NOT NULL UNIQUE,
          session_id TEXT NOT NULL REFERENCES sessions(id),
          parent TEXT,
          kind TEXT NOT NULL,
          created_at_ns INTEGER NOT NULL,
          tree BLOB NOT NULL,
          reasoning TEXT NOT NULL,
          goal_id TEXT,
          task_id TEXT,
          tool_calls TEXT NOT NULL,
          confidence REAL NOT NULL,
          name TEXT,
          tags TEXT NOT NULL,
          files INTEGER NOT NULL,
          size_bytes INTEGER NOT NULL,
          added INTEGER NOT NULL,
          modified INTEGER NOT NULL,
          removed INTEGER NOT NULL,
          report BLOB,
          restores_from TEXT,
          partial INTEGER NOT NULL,
          message_index INTEGER,
          tool_use_id TEXT,
          round INTEGER NOT NULL,
          components BLOB,
          checksum BLOB
        );
        INSERT INTO wider_checkpoints
          SELECT sequence, id, session_id, parent, kind, created_at_ns, tree, reasoning, goal_id,
            task_id, tool_calls, confidence, name, tags, files, size_bytes, added, modified,
            removed, report, restores_from, partial, NULL, NULL, 1, NULL, checksum
          FROM checkpoints;
        CREATE TABLE wider_operations (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          kind TEXT NOT NULL,
          session_id TEXT NOT NULL REFERENCES sessions(id),
          at_ns INTEGER NOT NULL,
          checkpoint TEXT,
          safety TEXT,
          head_before TEXT,
          reverses INTEGER,
          token TEXT UNIQUE,
          note TEXT,
          checksum BLOB
        );
        INSERT INTO wider_operations
          SELECT sequence, kind, session_id, at_ns, checkpoint, safety, head_before, reverses,
            token, NULL, checksum
          FROM operations;
        DELETE FROM sqlite_sequence WHERE name LIKE 'wider_%';
        INSERT INTO sqlite_sequence
          SELECT 'wider_' || name, seq FROM sqlite_sequence
          WHERE name IN ('checkpoints', 'operations');
        DROP TABLE checkpoints;
        DROP TABLE operations;
        ALTER TABLE wider_checkpoints RENAME TO checkpoints;
        ALTER TABLE wider_operations RENAME TO operations;
        CREATE UNIQUE INDEX checkpoint_names ON checkpoints(session_id, name)
          WHERE name IS NOT NULL;
        CREATE INDEX checkpoint_history ON checkpoints(session_id, sequence);
        CREATE INDEX checkpoint_children ON checkpoints(parent);
        CREATE INDEX checkpoint_kinds ON checkpoints(session_id, kind, created_at_ns);
        CREATE INDEX checkpoint_rounds ON checkpoints(session_id, round, kind);
        CREATE INDEX operation_history ON operations(session_id, sequence);
        CREATE INDEX operation_kinds ON operations(session_id, kind, sequence);
        """,
        fill=_seal_wider_rows,
    ),
)

_RECORDS = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) WITHOUT ROWID"


def applied_migrations(db: apsw.Connection) -> tuple[str, ...]:
    exists = "SELECT 1 FROM sqlite_schema WHERE type='table' AND name='migrations'"
    if not db.execute(exists).fetchall():
        return ()
    names = db.execute("SELECT name FROM migrations ORDER BY name")
    return tuple(str(name) for (name,) in names)  # damaged bytes can change their type


def require_known(
    applied: tuple[str, ...],
    migrations: tuple[Migration, ...] = MIGRATIONS,
    database: str = "catalog",
) -> None:
    known = [migration.name for migration in migrations]
    unknown = sorted(set(applied) - set(known))
    # A later version has every step of this one. If one is missing, an unknown name is a changed
    # byte.
    if unknown and not set(known) <= set(applied):
        raise StoreDamaged(
            f"the {database}'s list of migrations is damaged: it contains {unknown[-1]!a}",
            hint="run: holdfast repair",
        )
    if unknown:
        raise NewerStore(
            f"a later version of Holdfast wrote this store (it contains {unknown[-1]!r})",
            hint="upgrade Holdfast and restart programs that use it; the store was not changed",
        )


def migrate(db: apsw.Connection, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Apply missing steps, in order; a failed step leaves no trace.

    Pages of rebuilt tables are freed. Otherwise they would never be read again, and damage to them
    would go unnoticed.
    """
    applied = set(applied_migrations(db))
    for migration in migrations:
        if migration.name in applied:
            continue
        with db:
            db.execute(_RECORDS)
            db.execute(migration.script)
            if migration.fill is not None:
                migration.fill(db)
            db.execute("INSERT INTO migrations VALUES (?)", (migration.name,))
    if db.execute("PRAGMA freelist_count").fetchall() != [(0,)]:
        with contextlib.suppress(apsw.FullError):
            db.execute("VACUUM")
