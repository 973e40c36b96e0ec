"""PostgreSQL in a checkpoint: every database that the setting `postgres` names.

Modules that a save does not need are imported on first use: most workspaces have no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.component_states import EXACT, ComponentState
from holdfast.domain.wording import count_words, printable
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    RestoreOf,
)

if TYPE_CHECKING:
    from holdfast.components.postgres.capture import Connector
    from holdfast.components.postgres.states import KeptDatabase
    from holdfast.components.postgres.tools import Tools

NAME = "postgres"
_SHOWN = 5


class PostgresComponent:
    """`sources` are environment variables, or files, that hold the URL of a database; `places` are
    directories with the server's tools besides PATH."""

    name = NAME
    order = 30
    restored_by_default = True
    modes = (EXACT,)
    not_searched = "the PostgreSQL databases themselves were not searched"

    def __init__(
        self,
        sources: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: tuple[str, ...] | None = None,
    ) -> None:
        self._sources = sources
        self._environment = environment
        self._places = places
        self._found_tools: Tools | None = None

    def applies(self, workspace: Path) -> bool:
        return any(
            source.startswith(("/", "~")) or self._environment.get(source)
            for source in self._sources
        )

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        from holdfast.components.postgres.capture import capture_database, is_unchanged

        problems: list[str] = []
        facts: list[dict[str, Any]] = []
        positions: dict[str, Any] = {}
        with self._connectors(request.timeout_s, problems) as connectors:
            with suppress(ComponentProblem):  # reported below, for each database it affects
                if not problems and is_unchanged(connectors, request.previous):
                    return None
            for connector in connectors:
                try:
                    captured = capture_database(connector, request, sink, set(positions))
                except ComponentProblem as error:
                    problems.append(str(error))
                else:
                    facts.append(captured.facts)
                    positions[captured.key] = captured.position
        if not facts:
            raise ComponentProblem("; ".join(problems) or "no database is configured")
        return Captured({"databases": facts}, tuple(problems), {"positions": positions})

    def describe(self, state: ComponentState) -> Sequence[str]:
        from holdfast.components.postgres.states import decode_databases

        lines = []
        for kept in decode_databases(state):
            lines.append(
                f"{_clean(kept.database)}: {count_words(kept.table_count, 'table')}, "
                f"{count_words(kept.total_rows, 'row')} (PostgreSQL {_clean(kept.shown_version)})"
            )
            largest = sorted(kept.rows.items(), key=lambda row: (-row[1], row[0]))[:_SHOWN]
            lines += [f"  {_clean(name)}: {count_words(rows, 'row')}" for name, rows in largest]
            if kept.table_count > len(largest):
                lines.append(f"  and {count_words(kept.table_count - len(largest), 'more table')}")
            if kept.large_objects:
                lines.append(f"  {count_words(kept.large_objects, 'large object')} not saved")
        return lines

    def plan(self, request: RestoreOf) -> ComponentPreview:
        from holdfast.components.postgres.restore import preview
        from holdfast.components.postgres.states import decode_databases

        actions: list[str] = []
        warnings: list[str] = []
        blocked: list[str] = []
        with self._connectors(request.timeout_s, blocked) as connectors:
            for kept in decode_databases(request.target):
                try:
                    connector = _connector_for(kept, connectors)
                    found = preview(connector, kept, request)
                except ComponentProblem as error:
                    blocked.append(str(error))
                else:
                    actions += found.actions
                    warnings += found.warnings
        return ComponentPreview(tuple(actions), tuple(warnings), tuple(blocked))

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        return ()

    def restore(self, request: RestoreOf) -> None:
        from holdfast.components.postgres.restore import DatabaseRestore

        with self._matched(request) as pairs:
            for kept, connector in pairs:
                DatabaseRestore(connector, kept, request).run()

    def verify(self, request: RestoreOf) -> Sequence[str]:
        from holdfast.components.postgres.restore import wrong_tables

        with self._matched(request) as pairs:
            return [text for kept, c in pairs for text in wrong_tables(c, kept, request)]

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        """Nothing is kept outside the store."""

    @contextmanager
    def _matched(self, request: RestoreOf) -> Iterator[list[tuple[KeptDatabase, Connector]]]:
        """Each database of the target with its connector; all of them before any is touched."""
        from holdfast.components.postgres.states import decode_databases

        problems: list[str] = []
        with self._connectors(request.timeout_s, problems) as connectors:
            if problems:
                raise ComponentProblem("; ".join(problems))
            wanted = decode_databases(request.target)
            yield [(kept, _connector_for(kept, connectors)) for kept in wanted]

    @contextmanager
    def _connectors(self, timeout_s: float, problems: list[str]) -> Iterator[list[Connector]]:
        """One for each configured database; errors of others are added to `problems`."""
        from holdfast.components.postgres.address import find_address
        from holdfast.components.postgres.capture import Connector
        from holdfast.components.postgres.tools import TimeLimit

        addresses = []
        for source in self._sources:
            try:
                address = find_address(source, self._environment)
            except ComponentProblem as error:
                problems.append(str(error))
            else:
                addresses += [address] if address is not None else []
        with TimeLimit(timeout_s) as limit:
            tools = self._tools()
            yield [Connector(a, self._environment, tools, limit) for a in addresses]

    def _tools(self) -> Tools:
        from holdfast.components.postgres.tools import USUAL_PLACES, Tools

        if self._found_tools is None:
            places = USUAL_PLACES if self._places is None else self._places
            self._found_tools = Tools(self._environment, places)
        return self._found_tools


def _connector_for(kept: KeptDatabase, connectors: Sequence[Connector]) -> Connector:
    """The one whose URL leads to exactly that database; a name is not enough."""
    others = []
    for connector in connectors:
        try:
            identity = connector.identity()
        except ComponentProblem as error:
            others.append(str(error))
            continue
        if kept.is_of(identity):
            return connector
        others.append(f"{connector.address.shown} is another database")
    reasons = "; ".join(others) or "no URL is set"
    raise ComponentProblem(
        f"cannot reach the captured database {_clean(kept.database)} ({reasons}); no other "
        "database is changed"
    )


def _clean(text: str) -> str:
    return printable(text)[:200]
