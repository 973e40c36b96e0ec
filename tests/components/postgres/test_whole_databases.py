"""A database comes back whole: schema, rows, sequences, rights, whatever was done to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components.postgres.conftest import Database
from tests.support.postgres_server import PostgresServer

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


@pytest.mark.requirement("DB-2")
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_rows_come_back_byte_for_byte_in_every_encoding(
    server: PostgresServer, tmp_path: Path, encoding: str
) -> None:
    name = f"encoded_{encoding.lower()}"
    made = Database(
        server, name, tmp_path, options=f"ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'"
    )
    odd = {"LATIN1": "\\xe9df", "SQL_ASCII": "\\xfffe80", "EUC_JP": "\\xb4c1bbfa"}[encoding]
    raw = f"convert_from('{odd}'::bytea, '{encoding}')"
    made.sql(
        "CREATE TABLE t (id int PRIMARY KEY, text text)",
        f"INSERT INTO t VALUES (1, {raw})",
        f"DO $$ BEGIN EXECUTE format('CREATE TABLE %I (a int)', {raw}); END $$",
        f"DO $$ BEGIN EXECUTE format('COMMENT ON TABLE t IS %L', {raw}); END $$",
    )
    look = (
        f"SELECT convert_to(text, '{encoding}') FROM t",
        f"SELECT convert_to(tablename, '{encoding}') FROM pg_tables WHERE schemaname = 'public'",
        f"SELECT convert_to(obj_description('t'::regclass), '{encoding}')",
    )
    before = made.sql(*look)
    assert odd in before
    then = made.run.captured()
    made.sql("DELETE FROM t", "COMMENT ON TABLE t IS NULL")
    made.run.restore_to(then)
    assert sorted(made.sql(*look).split()) == sorted(before.split())
    server.run("postgres", f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.requirement("DB-2")
def test_the_owner_of_a_database_needs_no_other_right(database: Database) -> None:
    name = database.name
    database.sql(
        "CREATE ROLE keeper LOGIN PASSWORD 'right'", f"ALTER DATABASE {name} OWNER TO keeper"
    )
    try:
        run = database.use(database.server.url(name, "keeper", "right"))
        database.sql(
            "SET ROLE keeper",
            "CREATE SCHEMA own",
            "CREATE TABLE own.t (id serial PRIMARY KEY)",
            "INSERT INTO own.t DEFAULT VALUES",
            "CREATE TABLE p (a int)",
            "GRANT SELECT ON p TO PUBLIC",
        )
        before = database.dump()
        then = run.captured()
        database.sql("SET ROLE keeper", "DROP SCHEMA own CASCADE", "REVOKE ALL ON p FROM PUBLIC")
        run.restore_to(then)
        assert database.dump() == before
    finally:
        database.sql(
            "DROP OWNED BY keeper", f"ALTER DATABASE {name} OWNER TO admin", "DROP ROLE keeper"
        )


@pytest.mark.requirement("DB-2")
def test_the_rights_of_the_schema_public_come_back(database: Database) -> None:
    database.sql("CREATE TABLE t (a int)")
    for then_rights, now_rights in (
        ("GRANT USAGE ON SCHEMA public TO PUBLIC", "REVOKE ALL ON SCHEMA public FROM PUBLIC"),
        ("REVOKE ALL ON SCHEMA public FROM PUBLIC", "GRANT ALL ON SCHEMA public TO PUBLIC"),
    ):
        database.sql(then_rights)
        before = database.sql("SELECT nspacl FROM pg_namespace WHERE nspname = 'public'")
        then = database.run.captured()
        database.sql(now_rights, "INSERT INTO t VALUES (1)")
        database.run.restore_to(then)
        after = database.sql("SELECT nspacl FROM pg_namespace WHERE nspname = 'public'")
        assert after == before
