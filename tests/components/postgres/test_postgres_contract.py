"""The component of PostgreSQL keeps the contract of every component."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.ports.component import Component
from holdfast.testing.component_contract import ComponentContract
from tests.components.postgres.conftest import Database


@pytest.mark.requirement("DB-2", "DB-3")
class TestPostgres(ComponentContract):
    @pytest.fixture(autouse=True)
    def _database(self, database: Database) -> None:
        self.database = database

    def make_component(self) -> Component:
        return self.database.run.component

    def make_state(self, place: Path) -> None:
        self.database.sql(
            "CREATE TABLE notes (id serial PRIMARY KEY, text text)",
            "INSERT INTO notes (text) VALUES ('a'), ('b')",
        )

    def change_state(self, place: Path) -> None:
        self.database.sql(
            "UPDATE notes SET text = 'c' WHERE id = 1", "CREATE TABLE more AS SELECT * FROM notes"
        )

    def look_at_state(self, place: Path) -> object:
        return self.database.dump()
