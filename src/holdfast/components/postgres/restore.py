"""Restores one database, in one transaction.

    lock the tables → check that the content is that of the safety capture (or already the target)
    → remove everything → schema → rows → indexes and constraints → sequences
    → count the rows → commit

Guarantees: others see the old database or the new one. An error, a lost connection or a crash
leaves the old one. Nothing is removed unless the state before the restore has it. A database other
than the captured one is not touched. It is idempotent. Not guaranteed: functions, types and the
like that are created between the check and the removal, because nothing can lock them; and roles,
which belong to the server and not to a database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from blake3 import blake3

from holdfast.components.postgres.capture import Connector, RowMeter, lock_tables, table_rows
from holdfast.components.postgres.catalog import (
    Identity,
    Table,
    estimated_rows,
    identify,
    is_unchanged_since,
    list_tables,
    other_connections,
    sequence_values,
)
from holdfast.components.postgres.connection import PsqlConnection, literal, quoted
from holdfast.components.postgres.drop import drop_everything
from holdfast.components.postgres.states import (
    AFTER,
    BEFORE,
    SEQUENCES,
    TABLES,
    KeptDatabase,
    decode_databases,
    encode_sequences,
    read_part,
    read_sequences,
    read_tables,
)
from holdfast.domain.component_states import ComponentState
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.wording import count_words, printable
from holdfast.ports.component import ComponentPreview, ComponentProblem, RestoreOf

_NEW_SCHEMA = re.compile(
    rb"^(-- Name: [^\n]*; Type: SCHEMA; Schema: -; Owner: [^\n]*\n--\n\nCREATE SCHEMA )",
    re.MULTILINE,
)
_EXTENSION_COMMENT = re.compile(
    rb"^-- Name: EXTENSION [^\n]*; Type: COMMENT; [^\n]*\n--\n\nCOMMENT ON EXTENSION [^\n]*;\n",
    re.MULTILINE,
)
_SCHEMA = "schema"
_MANY = 200


class DatabaseRestore:
    """One database of one restore."""

    def __init__(self, connector: Connector, kept: KeptDatabase, request: RestoreOf) -> None:
        self._connector = connector
        self._kept = kept
        self._parts = kept.parts
        self._request = request

    def run(self) -> None:
        with self._connector.connect() as connection:
            identity = identify(connection)
            self.require_same(identity)
            wait_ms = self._connector.lock_wait_ms
            connection.execute("beginning", f"SET lock_timeout = {wait_ms}", "BEGIN")
            tables = list_tables(connection)
            if tables:
                lock_tables(connection, tables, "SHARE")
            if list_tables(connection) != tables:
                raise self._problem(
                    "tables are being created or dropped: stop the programs that use it and "
                    "restore again"
                )
            if self._is_there_already(connection, identity, tables):
                return
            self._rebuild(connection)
            connection.execute("committing", "COMMIT")

    def require_same(self, identity: Identity) -> None:
        if not self._kept.is_of(identity):
            raise self._problem(
                f"it is not the captured database ({self._kept.database} on server "
                f"{self._kept.system}) and was not changed"
            )
        then = self._kept.shown_version.partition(".")[0]
        if then != str(identity.major):
            raise self._problem(
                f"the dump is from PostgreSQL {then} and the server is now {identity.major}, "
                "which may be unable to load it"
            )

    def _problem(self, why: str) -> ComponentProblem:
        return ComponentProblem(f"{self._connector.address.shown}: {why}")

    def _is_there_already(
        self, connection: PsqlConnection, identity: Identity, tables: tuple[Table, ...]
    ) -> bool:
        """Whether the target is already reached. `ComponentProblem` if the content is neither the
        target nor the safety capture. Tables are locked, so the answer stays valid."""
        target = _digests(self._kept, self._request.target)
        present = self._request.present
        before = _digests(self._kept, present)
        position = {} if present is None else present.notes.get("positions", {})
        at = position.get(self._parts.key)
        if at is not None and is_unchanged_since(connection, at):
            there = before | self._own_sequences(connection)
        else:
            there = self._look(connection, identity, tables)
        if there == target:
            return True
        if there != before:
            changed = sorted(name for name in there if there[name] != before.get(name))
            named = ", ".join(name.removeprefix(self._parts.named("")) for name in changed[:3])
            raise self._problem(
                "it changed after it was saved and was not restored "
                f"({named or 'tables are gone'}): stop the programs that write to it and restore "
                "again"
            )
        return False

    def _look(
        self, connection: PsqlConnection, identity: Identity, tables: tuple[Table, ...]
    ) -> dict[str, str]:
        """What a capture would contain now, without storing it."""
        schema = self._connector.schema(identity, None)
        there = {_SCHEMA: schema.shape.hex()}
        meter = self._meter("comparing", estimated_rows(connection))
        for table in tables:
            digest = blake3()
            for block in meter.count_rows(table_rows(connection, table)):
                digest.update(block)
            there[self._parts.rows(table)] = digest.hexdigest()
        return there | self._own_sequences(connection)

    def _own_sequences(self, connection: PsqlConnection) -> dict[str, str]:
        values = encode_sequences(sequence_values(connection))
        return {self._parts.named(SEQUENCES): digest_of(values).hex()}

    def _rebuild(self, connection: PsqlConnection) -> None:
        contents = self._request.contents
        tables = read_tables(contents, self._parts)
        before = read_part(contents, self._parts, BEFORE)
        after = read_part(contents, self._parts, AFTER)
        sequences = read_sequences(contents, self._parts)
        drop_everything(connection, self._kept.extensions, with_public=self._kept.public)
        # Extensions still exist, with their schema, and may belong to another user.
        before = _NEW_SCHEMA.sub(rb"\1IF NOT EXISTS ", before)
        before = _EXTENSION_COMMENT.sub(b"--\n", before)
        connection.execute_script("creating the schema", before)
        meter = self._meter("loading", sum(rows for _, rows in tables))
        for table, _ in tables:
            doing = f"loading {table.qualified}"
            connection.copy_in(doing, table.target, meter.count_rows(self._stored_rows(table)))
        self._meter("indexing", None)
        connection.execute_script("creating indexes and constraints", after)
        for start in range(0, len(sequences), _MANY):
            calls = ", ".join(_set_value(*row) for row in sequences[start : start + _MANY])
            connection.execute("setting the sequences", f"SELECT {calls}")
        self._require_rows(connection, tables)

    def _meter(self, doing: str, expected: int | None) -> RowMeter:
        return RowMeter(self._request.progress, f"{doing} {self._kept.database}", expected)

    def _stored_rows(self, table: Table) -> Iterator[bytes]:
        try:
            yield from self._request.contents.read(self._parts.rows(table))
        except KeyError:
            raise self._problem(
                f"the rows of {table.qualified} are missing from the checkpoint"
            ) from None

    def _require_rows(self, connection: PsqlConnection, tables: list[tuple[Table, int]]) -> None:
        """Before the commit: every table must have as many rows as in the checkpoint."""
        for start in range(0, len(tables), _MANY):
            chosen = tables[start : start + _MANY]
            query = " UNION ALL ".join(
                f"SELECT json_build_array({number}, count(*)) FROM ONLY {table.qualified}"
                for number, (table, _) in enumerate(chosen)
            )
            for number, count in connection.rows("counting the rows", query):
                table, wanted = chosen[number]
                if count != wanted:
                    has = count_words(count, "row")
                    raise self._problem(f"{table.qualified} would have {has} instead of {wanted:,}")


def _digests(kept: KeptDatabase, state: ComponentState | None) -> dict[str, str]:
    """The parts of a database in a state: its schema's shape, its rows, its sequences."""
    parts = kept.parts
    found = {name: content.digest.hex() for name, content in parts.of(state).items()}
    for part in (BEFORE, AFTER, TABLES):
        found.pop(parts.named(part), None)
    if state is not None and state.failure is None:
        for row in decode_databases(state):
            if row.parts == parts:
                found[_SCHEMA] = row.schema
    return found


def _set_value(schema: str, name: str, value: int, called: bool) -> str:
    place = literal(f"{quoted(schema)}.{quoted(name)}")
    return f"pg_catalog.setval({place}, {value}, {'true' if called else 'false'})"


def wrong_tables(connector: Connector, kept: KeptDatabase, request: RestoreOf) -> list[str]:
    """Missing and extra tables. Rows are not counted again: they were before the commit, and others
    may be writing."""
    with connector.connect() as connection:
        identify(connection)
        there = {table.qualified for table in list_tables(connection)}
    wanted = {table.qualified for table, _ in read_tables(request.contents, kept.parts)}
    return [f"{name} is missing" for name in sorted(wanted - there)] + [
        f"{name} should not exist" for name in sorted(there - wanted)
    ]


_MOST_SHOWN = 50


def preview(connector: Connector, kept: KeptDatabase, request: RestoreOf) -> ComponentPreview:
    with connector.connect() as connection:
        DatabaseRestore(connector, kept, request).require_same(identify(connection))
        others = other_connections(connection)
    now = _same_database(kept, request.present)
    if now is not None and _is_same(kept, request):
        return ComponentPreview()
    actions = list(_differences(kept, now))
    shown = actions[:_MOST_SHOWN]
    if len(actions) > len(shown):
        shown.append(f"{kept.database}: and {count_words(len(actions) - len(shown), 'more table')}")
    warnings = [
        f"{kept.database}: {count_words(count, 'connection')} of {printable(name)} "
        "will be blocked during the restore, and then see other rows"
        for name, count in others
    ]
    if kept.large_objects or (now is not None and now.large_objects):
        warnings.append(f"{kept.database}: large objects are not restored")
    return ComponentPreview(tuple(map(printable, shown)), tuple(map(printable, warnings)))


def _same_database(kept: KeptDatabase, state: ComponentState | None) -> KeptDatabase | None:
    if state is None or state.failure is not None:
        return None
    for found in decode_databases(state):
        if (found.system, found.database) == (kept.system, kept.database):
            return found
    return None


def _is_same(kept: KeptDatabase, request: RestoreOf) -> bool:
    """Whether both states are the same as far as known: a preview stores no rows."""
    there = {n: c.digest for n, c in kept.parts.of(request.present).items()}
    wanted = {n: c.digest for n, c in kept.parts.of(request.target).items()}
    return there == wanted


def _differences(kept: KeptDatabase, now: KeptDatabase | None) -> Iterator[str]:
    yield f"{kept.database}: replace all content: {_rows(kept.total_rows)} in the checkpoint" + (
        "" if now is None else f", {_rows(now.total_rows)} now"
    )
    if now is None:
        return
    if kept.schema != now.schema:
        yield f"{kept.database}: restore the schema"
    for name in sorted(kept.rows.keys() | now.rows.keys()):
        then, there = kept.rows.get(name), now.rows.get(name)
        if then is None:
            yield f"{kept.database}: remove {name}, which has {_rows(there or 0)}"
        elif there is None:
            yield f"{kept.database}: recreate {name} with {_rows(then)}"
        elif then != there:
            yield f"{kept.database}: {name} from {_rows(there)} to {_rows(then)}"


def _rows(number: int) -> str:
    return count_words(number, "row")
