"""Databases in a checkpoint, as values.

    <system>/<database>/before       the schema that is created before the rows
    <system>/<database>/after        indexes, constraints, triggers: created after the rows
    <system>/<database>/tables       [{schema, name, columns, key, rows}, …]
    <system>/<database>/sequences    [[schema, name, last value, used], …]
    <system>/<database>/rows/<schema>/<table>   the rows, in the text format of COPY

Facts may come from an imported bundle: everything is checked here before it reaches a server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from holdfast.components.postgres.catalog import Identity, Table
from holdfast.domain.component_states import ComponentState, StoredContent
from holdfast.domain.ids import Digest
from holdfast.ports.component import ComponentProblem, ContentSource

BEFORE, AFTER, TABLES, SEQUENCES = "before", "after", "tables", "sequences"
LARGEST_SCHEMA_BYTES = 64 << 20
MOST_LISTED = 1_000
_LARGEST_NUMBER = 1 << 63


@dataclass(frozen=True, slots=True)
class Parts:
    """The names of one database's contents."""

    key: str

    def named(self, part: str) -> str:
        return f"{_plain(self.key, '/')}/{part}"

    def rows(self, table: Table) -> str:
        return self.named(f"rows/{_plain(table.schema)}/{_plain(table.name)}")

    def of(self, state: ComponentState | None) -> dict[str, StoredContent]:
        """All contents of this database in a state, by name."""
        start = self.named("")
        contents = () if state is None else state.contents
        return {c.name: c for c in contents if c.name.startswith(start)}


@dataclass(frozen=True, slots=True)
class KeptDatabase:
    """The facts about one database; `rows` is by table, for the first thousand."""

    system: str
    database: str
    shown_version: str
    schema: str
    total_rows: int
    table_count: int
    rows: Mapping[str, int]
    extensions: Mapping[str, str]
    large_objects: int
    public: bool

    @property
    def parts(self) -> Parts:
        return Parts(f"{self.system}/{self.database}")

    def is_of(self, identity: Identity) -> bool:
        return (self.system, self.database) == (identity.system, identity.database)


def database_facts(
    identity: Identity,
    schema: Digest,
    rows: Sequence[tuple[Table, int]],
    around: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "system": identity.system,
        "database": identity.database,
        "version": identity.shown_version,
        "schema": schema.hex(),
        "tables": len(rows),
        "rows": sum(count for _, count in rows),
        "rows_of": {f"{t.schema}.{t.name}": count for t, count in rows[:MOST_LISTED]},
        "extensions": dict(around["extensions"]),
        "large_objects": around["large_objects"],
        "public": around["public"],
    }


def decode_databases(state: ComponentState) -> list[KeptDatabase]:
    """`ComponentProblem` if no capture could have made this."""
    try:
        return [
            KeptDatabase(
                str(row["system"]),
                str(row["database"]),
                str(row["version"]),
                str(row["schema"]),
                int(row["rows"]),
                int(row["tables"]),
                {str(name): int(count) for name, count in row["rows_of"].items()},
                {str(name): str(version) for name, version in row["extensions"].items()},
                int(row["large_objects"]),
                bool(row["public"]),
            )
            for row in state.facts["databases"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ComponentProblem(f"the checkpoint's database data is unusable: {error}") from None


def encode_tables(rows: Sequence[tuple[Table, int]]) -> bytes:
    listed = [
        {"schema": t.schema, "name": t.name, "columns": t.columns, "key": t.key, "rows": count}
        for t, count in rows
    ]
    return json.dumps(listed, separators=(",", ":")).encode()


def read_tables(contents: ContentSource, parts: Parts) -> list[tuple[Table, int]]:
    try:
        rows = json.loads(read_part(contents, parts, TABLES))
        return [
            (
                Table(_name(r["schema"]), _name(r["name"]), _names(r["columns"]), _names(r["key"])),
                int(r["rows"]),
            )
            for r in rows
        ]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ComponentProblem(f"the list of tables is unusable: {error}") from None


def encode_sequences(values: Sequence[Sequence[Any]]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode()


def read_sequences(contents: ContentSource, parts: Parts) -> list[tuple[str, str, int, bool]]:
    try:
        rows = json.loads(read_part(contents, parts, SEQUENCES))
        return [(_name(s), _name(n), _number(value), bool(called)) for s, n, value, called in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise ComponentProblem(f"the list of sequences is unusable: {error}") from None


def read_part(contents: ContentSource, parts: Parts, part: str) -> bytes:
    data = bytearray()
    try:
        for piece in contents.read(parts.named(part)):
            data += piece
            if len(data) > LARGEST_SCHEMA_BYTES:
                raise ComponentProblem("the stored schema is too large")
    except KeyError:
        raise ComponentProblem(
            f"a part of {parts.key} is missing from the checkpoint: {part}"
        ) from None
    return bytes(data)


def _plain(name: str, safe: str = "") -> str:
    """A name as part of a content's name, even from a server without an encoding."""
    return quote(name, safe=safe, errors="surrogateescape")


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value or len(value) > 256:
        raise ValueError(f"{value!r:.80} is not a name")
    return value


def _names(values: Any) -> tuple[str, ...]:
    return tuple(_name(value) for value in values)


def _number(value: Any) -> int:
    if type(value) is not int or abs(value) > _LARGEST_NUMBER:
        raise ValueError(f"{value!r:.80} is not a number")
    return value
