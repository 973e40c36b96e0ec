"""The preview of a restore counts the rows of SQLite databases that it would rewrite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.engine.components.database_rows import ChangedRows
from holdfast.tools import ToolHandlers
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

pytestmark = pytest.mark.requirement("RB-1")

CHANGES = (
    "shop.db: remove drafts, which has 1 row",
    "shop.db: recreate orders with 2 rows",
    "shop.db: talks from 18 rows to 15 rows",
)


def run_sql(place: Path, *statements: str) -> None:
    with closing(sqlite3.connect(place)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


@pytest.fixture
def shop(cli: CommandLine) -> CommandLine:
    place = cli.workspace / "shop.db"
    run_sql(
        place,
        "create table talks (x)",
        "create table orders (x)",
        "create table same (x)",
        "insert into same values (1)",
        "insert into orders values (1), (2)",
        f"insert into talks values {', '.join(['(0)'] * 15)}",
    )
    cli.save("before", "--name", "before")
    run_sql(
        place,
        "insert into talks values (1), (2), (3)",
        "drop table orders",
        "create table drafts (x)",
        "insert into drafts values (1)",
        "update same set x = 2",
    )
    return cli


def test_a_dry_run_counts_the_rows(shop: CommandLine) -> None:
    lines = shop("restore", "before", "--dry-run").out.splitlines()
    assert tuple(line for line in lines if line.startswith("shop.db: ")) == CHANGES


def test_a_person_is_asked_with_the_rows(shop: CommandLine) -> None:
    (shop.workspace / "README.md").write_text("changed\n")
    with Screen(shop.workspace, "restore", "before") as screen:
        shown = screen.read_until("Restore? [y/N] ")
        screen.type("n\n")
        screen.finish()
    assert all(change in shown for change in CHANGES)


def test_an_agent_is_shown_the_rows(shop: CommandLine) -> None:
    with SessionCheckpointer(shop.workspace, shop.json("status")["session_id"]) as session:
        shown = ToolHandlers(session).call("checkpoint_restore", {"checkpoint_id": "before"})
    assert all(change in shown.output for change in CHANGES)


def test_a_database_without_known_rows_is_not_described() -> None:
    assert ChangedRows(b"a.db", None, {"t": 1}).differences == []
    assert ChangedRows(b"a.db", {"t": 1}, None).differences == []


def test_many_tables_are_counted() -> None:
    now, then = dict.fromkeys("abcdefg", 1), dict.fromkeys("abcdefg", 2)
    *shown, more = ChangedRows(b"a.db", now, then).differences
    assert shown == [f"{table} from 1 row to 2 rows" for table in "abcde"]
    assert more == "and 2 more tables"
