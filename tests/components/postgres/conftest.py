"""One real server for the tests of a process, and a fresh database for each of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.components.postgres.component import PostgresComponent
from tests.support.component_runs import ComponentRun, Contents
from tests.support.postgres_server import PostgresServer

_NUMBERS = itertools.count(1)
SHOP = Path(__file__).parents[2] / "support" / "shop.sql"
SOURCE = "HOLDFAST_POSTGRES_URL"


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


class Database:
    """A database of its own, and the component that is configured for it."""

    def __init__(
        self, server: PostgresServer, name: str, workspace: Path, *, options: str = ""
    ) -> None:
        self.server = server
        self.name = name
        self.workspace = workspace
        self.kept: dict[int, Contents] = {}
        server.run("postgres", f'CREATE DATABASE "{name}" {options}')
        self.run = self.use(server.url(name))

    def use(self, url: str, **more: str) -> ComponentRun:
        """Be configured for this URL from now on."""
        environment = {"PATH": str(self.server.programs), SOURCE: url} | more
        component = PostgresComponent([SOURCE], environment, places=())
        self.run = ComponentRun(component, self.workspace, time.time_ns())
        self.run.kept = self.kept
        return self.run

    def fill(self) -> None:
        """With a little of everything."""
        self.server.run_script(self.name, SHOP.read_text("utf-8"))

    def sql(self, *statements: str) -> str:
        return self.server.run(self.name, *statements)

    @contextmanager
    def transaction(self) -> Iterator[Callable[[str], None]]:
        """Another connection with an open transaction, which is rolled back at the end."""
        with self.server.connected(self.name) as run:
            run("BEGIN")
            yield run

    def dump(self) -> str:
        return self.server.dump(self.name)


@pytest.fixture
def database(server: PostgresServer, tmp_path: Path) -> Iterator[Database]:
    made = Database(server, f"app{next(_NUMBERS)}", tmp_path)
    yield made
    server.run("postgres", f'DROP DATABASE IF EXISTS "{made.name}" WITH (FORCE)')
