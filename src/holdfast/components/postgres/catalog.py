"""A server's metadata about a database: its identity, its tables, and the position of its log.

**Unchanged.** Every transaction that changes anything, in any kind of table, writes its end to the
server's log before others see its changes. So a database is unchanged if the end of the log is:
same server, same start, same timeline, same position. A position is remembered only if all of it
was on disk, so that no crash can move the log behind it. Also, no transaction may be in progress,
because one whose end is already in the log may become visible later. Sequences are the exception,
because they count ahead without the log. They are compared by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.components.postgres.connection import PsqlConnection, literal, quoted
from holdfast.ports.component import ComponentProblem

OLDEST_VERSION = 130_000
_MANY = 200

_IDENTITY = """
SELECT json_build_object(
  'system', (SELECT system_identifier::text FROM pg_control_system()),
  'database', current_database(),
  'version', current_setting('server_version_num')::int,
  'shown_version', current_setting('server_version'),
  'encoding', current_setting('server_encoding'),
  'is_copy', pg_is_in_recovery())
"""
_POSITION = """
SELECT json_build_object(
  'written', pg_current_wal_insert_lsn()::text,
  'on_disk', pg_current_wal_flush_lsn()::text,
  'timeline', (SELECT timeline_id FROM pg_control_checkpoint()),
  'started', extract(epoch FROM pg_postmaster_start_time())::text)
"""
_UNDER_WAY = """
SELECT json_build_object('count', count(*)) FROM pg_locks
WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock'
"""
_OWN = """
  n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (
    SELECT FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
"""
_TABLES = f"""
SELECT json_build_object(
  'schema', n.nspname, 'name', c.relname,
  'columns', (
    SELECT coalesce(json_agg(a.attname ORDER BY a.attnum), '[]') FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
  'key', coalesce((
    SELECT json_agg(a.attname ORDER BY k.place)
    FROM pg_index i,
      unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place),
      pg_attribute a
    WHERE i.indrelid = c.oid AND i.indisprimary AND k.place <= i.indnkeyatts
      AND a.attrelid = c.oid AND a.attnum = k.number), '[]'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND {_OWN}
ORDER BY n.nspname, c.relname
"""
_ESTIMATE = f"""
SELECT json_build_object('rows', coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND {_OWN}
"""
_SEQUENCES = f"""
SELECT json_build_array(n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND {_OWN}
ORDER BY n.nspname, c.relname
"""
_SURROUNDINGS = """
SELECT json_build_object(
  'extensions', (SELECT coalesce(json_agg(json_build_array(extname, extversion) ORDER BY extname),
                                 '[]') FROM pg_extension),
  'public', EXISTS (SELECT FROM pg_namespace WHERE nspname = 'public'),
  'large_objects', (SELECT count(*) FROM pg_largeobject_metadata),
  'subscriptions', (SELECT count(*) FROM pg_stat_subscription))
"""
_OTHERS = """
SELECT json_build_object('name', coalesce(nullif(application_name, ''), 'unnamed'),
                         'count', count(*))
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
GROUP BY 1::text, application_name ORDER BY count(*) DESC, application_name LIMIT 5
"""
SESSION = (
    "SET client_min_messages = error",
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET standard_conforming_strings = on",
    "SET search_path = ''",
    "SET row_security = off",
    "SET synchronize_seqscans = off",
    "SET max_parallel_workers_per_gather = 0",
    "SET extra_float_digits = 3",
    "SET DateStyle = ISO",
    "SET IntervalStyle = postgres",
    "SET TimeZone = 'UTC'",
    "SET bytea_output = hex",
    "SET xmloption = content",
)
"""Value texts that do not depend on the session's settings, and no rows hidden from the user."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies a database. A copy of a server has the same identity, by PostgreSQL's design."""

    system: str
    database: str
    version: int
    shown_version: str
    encoding: str

    @property
    def major(self) -> int:
        return self.version // 10_000

    @property
    def key(self) -> str:
        return f"{self.system}/{self.database}"

    @property
    def client_encoding(self) -> str:
        return "SQL_ASCII" if self.encoding == "SQL_ASCII" else "UTF8"


@dataclass(frozen=True, slots=True)
class Table:
    schema: str
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def qualified(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def target(self) -> str:
        """The table and columns that rows are copied into."""
        return self.qualified + _listed(self.columns)

    @property
    def source(self) -> str:
        """The source of rows: in key order, else in storage order."""
        if not self.key or not self.columns:
            return self.target
        columns, key = ", ".join(map(quoted, self.columns)), ", ".join(map(quoted, self.key))
        return f"(SELECT {columns} FROM ONLY {self.qualified} ORDER BY {key})"


def _listed(columns: Sequence[str]) -> str:
    return f" ({', '.join(map(quoted, columns))})" if columns else ""


def identify(connection: PsqlConnection) -> Identity:
    connection.execute("connecting", *SESSION)
    [row] = connection.rows("connecting", _IDENTITY)
    identity = Identity(
        row["system"], row["database"], row["version"], row["shown_version"], row["encoding"]
    )
    shown = connection.address.shown
    if identity.version < OLDEST_VERSION:
        raise ComponentProblem(f"{shown}: PostgreSQL {identity.shown_version} is too old")
    if row["is_copy"]:
        raise ComponentProblem(
            f"{shown} is a standby, which cannot be restored: name the primary in "
            f"{connection.address.source}"
        )
    connection.execute("connecting", f"SET client_encoding = {literal(identity.client_encoding)}")
    return identity


def log_position(connection: PsqlConnection) -> dict[str, Any] | None:
    """The log position; None if no conclusion would be possible later."""
    position = current_position(connection)
    [under_way] = connection.rows("checking transactions", _UNDER_WAY)
    settled = under_way["count"] == 0 and position.pop("on_disk") == position["written"]
    return position if settled else None


def current_position(connection: PsqlConnection) -> dict[str, Any]:
    [position] = connection.rows("reading the log position", _POSITION)
    found: dict[str, Any] = position
    return found


def is_unchanged_since(connection: PsqlConnection, position: Any) -> bool:
    """Whether nothing was written since a position from `log_position`."""
    found = current_position(connection)
    found.pop("on_disk")
    return bool(position == found)


def list_tables(connection: PsqlConnection) -> tuple[Table, ...]:
    return tuple(
        Table(row["schema"], row["name"], tuple(row["columns"]), tuple(row["key"]))
        for row in connection.rows("listing the tables", _TABLES)
    )


def estimated_rows(connection: PsqlConnection) -> int:
    """In all tables, by the server's estimate; 0 if there is none."""
    [row] = connection.rows("listing the tables", _ESTIMATE)
    return int(row["rows"])


def sequence_values(connection: PsqlConnection) -> list[list[Any]]:
    """Schema, name, last value and whether it was used, for every sequence."""
    names = [
        (schema, name) for schema, name in connection.rows("listing the sequences", _SEQUENCES)
    ]
    values: list[list[Any]] = []
    for start in range(0, len(names), _MANY):
        parts = [
            f"SELECT json_build_array({literal(schema)}, {literal(name)}, last_value, is_called) "
            f"FROM {quoted(schema)}.{quoted(name)}"
            for schema, name in names[start : start + _MANY]
        ]
        values += connection.rows("reading the sequences", " UNION ALL ".join(parts))
    return values


def surroundings(connection: PsqlConnection) -> dict[str, Any]:
    [row] = connection.rows("checking the database", _SURROUNDINGS)
    found: dict[str, Any] = row
    return found


def other_connections(connection: PsqlConnection) -> list[tuple[str, int]]:
    return [(r["name"], r["count"]) for r in connection.rows("listing connections", _OTHERS)]
