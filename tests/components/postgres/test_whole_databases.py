"""A database comes back whole: schema, rows, sequences, rights, whatever was done to it."""

from __future__ import annotations

import pytest

from tests.components.postgres.conftest import Database

CHANGES = {
    "rows": ("DELETE FROM shop.orders WHERE id % 2 = 0", "UPDATE shop.users SET name = 'Bob'"),
    "a dropped table": ("DROP TABLE shop.orders CASCADE",),
    "a truncated table": ("TRUNCATE parted, log",),
    "another shape": (
        "ALTER TABLE shop.users ADD COLUMN mail text UNIQUE DEFAULT 'x' || random()",
        "ALTER TABLE shop.orders DROP COLUMN note",
        "ALTER TYPE shop.mood ADD VALUE 'sad'",
        "DROP INDEX shop.orders_by_user",
    ),
    "new things": (
        "CREATE SCHEMA more",
        "CREATE TABLE more.t (a int REFERENCES shop.users)",
        "CREATE VIEW more.v AS SELECT * FROM shop.orders",
        "CREATE FUNCTION f(shop.users) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE TYPE span AS RANGE (subtype = float8)",
        "CREATE CAST (pair AS text) WITH INOUT",
        "CREATE TEXT SEARCH CONFIGURATION words (COPY = simple)",
        "CREATE COLLATION posix (locale = 'POSIX')",
        "CREATE EVENT TRIGGER spy ON ddl_command_end EXECUTE FUNCTION more_spy()",
    ),
    "everything gone": ("DROP SCHEMA shop CASCADE", "DROP SCHEMA public CASCADE"),
    "sequences": ("SELECT nextval('shop.odd')", "SELECT setval('shop.orders_id_seq', 1000)"),
}


@pytest.mark.requirement("DB-2")
@pytest.mark.parametrize("change", CHANGES)
def test_a_database_comes_back_as_it_was_and_the_restore_can_be_undone(
    database: Database, change: str
) -> None:
    database.fill()
    before = database.dump()
    then = database.run.captured()
    if change == "new things":
        database.sql(
            "CREATE FUNCTION more_spy() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $f$ BEGIN IF tg_tag LIKE 'DROP%' THEN RAISE 'spied'; END IF; END $f$"
        )
    database.sql(*CHANGES[change])
    changed = database.dump()
    assert changed != before
    present = database.run.restore_to(then)
    assert database.dump() == before
    assert database.run.captured().same_as(then)
    database.run.restore(present, database.run.captured())
    assert database.dump() == changed
