"""Dumps one database as of one moment.

    lock every table against schema changes → one snapshot for everything, exported to `pg_dump`
    → schema → rows of each table, as its own content → sequences

Guarantees: rows and schema belong to one moment, whatever others write meanwhile; readers and
writers of rows are not blocked. Equal rows give equal bytes, so that an unchanged table is stored
once. Rows come in primary key order, or in storage order without one. Not covered: large objects
and subscriptions, which are counted, and tables of extensions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from holdfast.components.postgres.address import Address
from holdfast.components.postgres.catalog import (
    Identity,
    Table,
    estimated_rows,
    identify,
    is_unchanged_since,
    list_tables,
    log_position,
    sequence_values,
    surroundings,
)
from holdfast.components.postgres.connection import PsqlConnection
from holdfast.components.postgres.states import (
    AFTER,
    BEFORE,
    LARGEST_SCHEMA_BYTES,
    SEQUENCES,
    TABLES,
    Parts,
    database_facts,
    encode_sequences,
    encode_tables,
)
from holdfast.components.postgres.tools import TimeLimit, Tools, output_of, tool_environment
from holdfast.domain.component_states import ComponentState
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import CaptureRequest, ComponentProblem, ContentSink
from holdfast.ports.progress import Progress

_BEGINNING = re.compile(
    rb"\A--\n-- PostgreSQL database dump\n--\n\n(?:\\restrict \w+\n\n)?"
    rb"(?:-- Dumped (?:from|by) .*\n)*"
)
_PUBLIC = re.compile(
    rb"^--\n-- Name: (?:SCHEMA )?public; Type: (?:SCHEMA|ACL|COMMENT); .*\n--\n(?:(?!--\n).*\n)*",
    re.MULTILINE,
)
_END = re.compile(rb"\\unrestrict \w+\s*\Z")


@dataclass(frozen=True, slots=True)
class Schema:
    """The parts of the schema before and after the rows."""

    before: bytes
    after: bytes

    @property
    def shape(self) -> Digest:
        """Equal for equal schemas. Without the rights of `public`: after it was recreated, a server
        describes the same rights differently."""
        return digest_of(_PUBLIC.sub(b"", self.before) + b"\0" + _PUBLIC.sub(b"", self.after))


def _reproducible(script: bytes) -> bytes:
    """Without the first and last lines, which name versions and a random `psql` guard word."""
    return _END.sub(b"", _BEGINNING.sub(b"", script, count=1), count=1).strip() + b"\n"


class RowMeter:
    """Counts the rows of one database as they pass. `expected` may be an estimate: a total that
    turns out too small is no longer shown."""

    def __init__(self, progress: Progress, phase: str, expected: int | None) -> None:
        self._progress = progress
        self._phase = phase
        self._expected = expected or None
        self._rows = 0
        self._report()

    def count_rows(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks. Each row ends with the only unescaped line feed."""
        for block in blocks:
            self._rows += block.count(b"\n")
            self._report()
            yield block

    @property
    def rows(self) -> int:
        return self._rows

    def _report(self) -> None:
        if self._expected is not None and self._rows > self._expected:
            self._expected = None
        self._progress.advance(self._phase, self._rows, self._expected)


_TRIES = 3


@dataclass(frozen=True, slots=True)
class CapturedDatabase:
    """`position` is the server's log position, if it is useful later."""

    key: str
    facts: dict[str, Any]
    position: dict[str, Any] | None


class Connector:
    """Opens connections to one database, and runs its `pg_dump`, under one time limit."""

    def __init__(
        self, address: Address, environment: Mapping[str, str], tools: Tools, limit: TimeLimit
    ) -> None:
        self.address = address
        self.lock_wait_ms = limit.lock_wait_ms
        self._tools = tools
        self._limit = limit
        self._identity: Identity | None = None
        self._environment = tool_environment(address, environment, limit.timeout_s)

    def identity(self) -> Identity:
        """Cached."""
        if self._identity is None:
            with self.connect() as connection:
                self._identity = identify(connection)
        return self._identity

    def connect(self) -> PsqlConnection:
        return PsqlConnection(self._tools.psql, self.address, self._environment, self._limit)

    def schema(self, identity: Identity, snapshot: str | None) -> Schema:
        program = self._tools.pg_dump(identity.major)

        def section(name: str) -> bytes:
            arguments = [
                program,
                f"--section={name}",
                f"--encoding={identity.client_encoding}",
                f"--lock-wait-timeout={self.lock_wait_ms}",
                "--no-subscriptions",
                "--no-password",
            ]
            if snapshot is not None:
                arguments.append(f"--snapshot={snapshot}")
            script = output_of(
                self._limit,
                arguments,
                self.address,
                self._environment,
                f"dumping the schema ({name})",
                LARGEST_SCHEMA_BYTES,
            )
            return _reproducible(script)

        return Schema(section("pre-data"), section("post-data"))


def is_unchanged(connectors: Sequence[Connector], previous: ComponentState | None) -> bool:
    """Whether the previous state has exactly these databases, unchanged."""
    positions = {} if previous is None or previous.problems else previous.notes.get("positions", {})
    found = set()
    if previous is None or len(positions) != len(connectors):
        return False
    for connector in connectors:
        with connector.connect() as connection:
            parts = Parts(identify(connection).key)
            position = positions.get(parts.key)
            known = previous.content(parts.named(SEQUENCES))
            if position is None or known is None or not is_unchanged_since(connection, position):
                return False
            if known.digest != digest_of(encode_sequences(sequence_values(connection))):
                return False
            found.add(parts.key)
    return len(found) == len(connectors)


def capture_database(
    connector: Connector, request: CaptureRequest, sink: ContentSink, taken: Set[str]
) -> CapturedDatabase:
    """`taken` are the databases already in the checkpoint."""
    with connector.connect() as connection:
        identity = identify(connection)
        if identity.key in taken:
            raise ComponentProblem(
                f"{connector.address.shown} is listed twice in the setting postgres"
            )
        parts = Parts(identity.key)
        position = log_position(connection)  # before the snapshot, so that the snapshot covers it
        tables, snapshot = _lock_and_snapshot(connection, connector.lock_wait_ms)
        request.progress.advance(f"dumping the schema of {identity.database}", 0, None)
        schema = connector.schema(identity, snapshot)
        if request.checkpoint is None:
            rows = []
            for number, table in enumerate(tables):
                request.progress.advance(f"counting {identity.database}", number, len(tables))
                rows.append((table, _count(connection, table)))
        else:
            expected = estimated_rows(connection)
            meter = RowMeter(request.progress, f"dumping {identity.database}", expected)
            rows = [(table, _take_rows(connection, table, parts, sink, meter)) for table in tables]
            sink.add(parts.named(BEFORE), [schema.before])
            sink.add(parts.named(AFTER), [schema.after])
            sink.add(parts.named(TABLES), [encode_tables(rows)])
            sink.add(parts.named(SEQUENCES), [encode_sequences(sequence_values(connection))])
        facts = database_facts(identity, schema.shape, rows, surroundings(connection))
        return CapturedDatabase(identity.key, facts, position)


def _lock_and_snapshot(
    connection: PsqlConnection, lock_wait_ms: int
) -> tuple[tuple[Table, ...], str]:
    """Lock the tables, then take the snapshot: no table can lose its rows in between."""
    connection.execute("connecting", f"SET lock_timeout = {lock_wait_ms}")
    tables = list_tables(connection)
    for _ in range(_TRIES):
        connection.execute("beginning", "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        if tables:
            lock_tables(connection, tables, "ACCESS SHARE")
        [snapshot] = connection.rows("beginning", "SELECT to_json(pg_export_snapshot())")
        found = list_tables(connection)
        if found == tables:
            return tables, snapshot
        connection.execute("beginning", "ROLLBACK")
        tables = found
    raise ComponentProblem(
        f"{connection.address.shown}: tables were created or dropped during the dump: wait for the "
        "migration to finish and try again"
    )


def lock_tables(connection: PsqlConnection, tables: tuple[Table, ...], mode: str) -> None:
    names = ", ".join(f"ONLY {table.qualified}" for table in tables)
    connection.execute("locking the tables", f"LOCK TABLE {names} IN {mode} MODE")


def _count(connection: PsqlConnection, table: Table) -> int:
    query = f"SELECT json_build_object('rows', count(*)) FROM ONLY {table.qualified}"
    [row] = connection.rows(f"counting {table.qualified}", query)
    return int(row["rows"])


def _take_rows(
    connection: PsqlConnection, table: Table, parts: Parts, sink: ContentSink, meter: RowMeter
) -> int:
    before = meter.rows
    sink.add(parts.rows(table), meter.count_rows(table_rows(connection, table)))
    return meter.rows - before


def table_rows(connection: PsqlConnection, table: Table) -> Iterator[bytes]:
    return connection.copy_out(f"dumping {table.qualified}", table.source)
