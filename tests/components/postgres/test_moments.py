"""A dump is of one moment, is not made when nothing changed, and a restore loses nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.components.postgres.connection import PsqlConnection
from holdfast.domain.component_states import ComponentState
from holdfast.ports.component import ComponentProblem
from tests.components.postgres.conftest import SOURCE, Database
from tests.support.component_runs import ComponentRun

TRIES = 100
"""The server's own housekeeping writes to its log now and then, and then a dump is made."""


def settled(database: Database) -> ComponentState:
    """A state that the component knows to be unchanged."""
    for _ in range(TRIES):
        state = database.run.captured()
        if database.run.capture(state) is None:
            return state
    raise AssertionError("nothing was ever found unchanged")


@pytest.mark.requirement("DB-2")
@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET a = a",
        "TRUNCATE t",
        "INSERT INTO quick VALUES (2)",
        "SELECT nextval('s')",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "COMMENT ON TABLE t IS 'new'",
    ],
)
def test_an_unchanged_database_is_not_dumped_again_and_every_change_is_seen(
    database: Database, change: str
) -> None:
    database.sql(
        "CREATE TABLE t (a int)",
        "CREATE UNLOGGED TABLE quick (a int)",
        "CREATE SEQUENCE s",
        "SELECT nextval('s')",
        "INSERT INTO t VALUES (1)",
    )
    state = settled(database)
    database.sql(change)
    assert database.run.capture(state) is not None


@pytest.mark.requirement("DB-2")
def test_nothing_is_concluded_while_a_transaction_is_under_way(database: Database) -> None:
    database.sql("CREATE TABLE t (a int)")
    with database.transaction() as other:
        other("INSERT INTO t VALUES (1)")
        state = database.run.captured()
        assert state.facts["databases"][0]["rows"] == 0
        assert list(state.notes["positions"].values()) == [None]
        other("COMMIT")
    again = database.run.captured(state)
    assert again.facts["databases"][0]["rows"] == 1


@pytest.mark.requirement("DB-2")
def test_a_dump_taken_under_writers_is_of_one_moment(database: Database) -> None:
    database.sql(
        "CREATE TABLE accounts (id int PRIMARY KEY, money int)",
        "CREATE TABLE moves (id serial PRIMARY KEY, amount int)",
        "INSERT INTO accounts SELECT n, 100 FROM generate_series(1, 200) n",
    )
    transfer = (
        "BEGIN; UPDATE accounts SET money = money - 1 WHERE id = (SELECT 1 + (random() * 99)::int);"
        " UPDATE accounts SET money = money + 1 WHERE id = (SELECT 101 + (random() * 98)::int);"
        " INSERT INTO moves (amount) VALUES (1); COMMIT;\n"
    )
    with subprocess.Popen(
        [database.server.programs / "psql", "-Xq", database.name],
        env={"PGHOST": str(database.server.directory), "PGUSER": "admin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as writer:
        assert writer.stdin is not None
        writer.stdin.write(transfer.encode() * 3_000)
        writer.stdin.flush()
        state = database.run.captured()
        writer.stdin.close()
    database.run.restore_to(state)
    sums = "SELECT sum(money) FROM accounts", "SELECT sum(money) FROM accounts WHERE id > 100"
    total, moved_to = (int(database.sql(query)) for query in sums)
    assert total == 20_000
    assert moved_to - 10_000 == int(database.sql("SELECT count(*) FROM moves"))


@pytest.mark.requirement("DB-2")
def test_rows_that_came_after_the_safety_capture_are_not_lost(database: Database) -> None:
    database.sql("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    then = database.run.captured()
    database.sql("INSERT INTO t VALUES (2)")
    present = database.run.captured()
    database.sql("INSERT INTO t VALUES (3)")
    with pytest.raises(ComponentProblem, match=r"changed after it was saved.*rows/public/t"):
        database.run.component.restore(database.run.request(then, present))
    with pytest.raises(ComponentProblem, match="changed after it was saved"):
        database.run.component.restore(database.run.request(then, None))
    assert database.sql("SELECT a FROM t ORDER BY a") == "1\n2\n3\n"


@pytest.mark.requirement("DB-2")
@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_restore_that_fails_anywhere_leaves_everything_as_it_was(
    database: Database, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.fill()
    then = database.run.captured()
    database.sql("DROP SCHEMA shop CASCADE", "INSERT INTO log VALUES (now(), 'later')")
    changed = database.dump()
    present = database.run.captured()
    calls = 0
    send = PsqlConnection._send

    def send_or_die(self: PsqlConnection, data: bytes) -> None:
        nonlocal calls
        calls += b"COPY " in data or b"CREATE " in data or b"COMMIT" in data
        if calls >= 3 * failing:
            self._process.kill()
        send(self, data)

    with monkeypatch.context() as patched:
        patched.setattr(PsqlConnection, "_send", send_or_die)
        with pytest.raises(ComponentProblem):
            database.run.component.restore(database.run.request(then, present))
    assert calls >= 3 * failing
    assert database.dump() == changed
    database.run.restore(then, present)
    assert database.run.captured().same_as(then)


@pytest.mark.requirement("DB-2")
def test_readers_see_the_old_rows_or_the_new_ones(database: Database) -> None:
    database.sql("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    then = database.run.captured()
    database.sql("INSERT INTO t SELECT generate_series(2, 20000)")
    present = database.run.captured()
    with subprocess.Popen(
        [database.server.programs / "psql", "-XqAt", database.name],
        env={"PGHOST": str(database.server.directory), "PGUSER": "admin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None
        reader.stdin.write("SELECT count(*) FROM t;\n" * 500)
        reader.stdin.flush()
        database.run.restore(then, present)
        seen, errors = reader.communicate("SELECT count(*) FROM t;\n")
    counts = list(map(int, seen.split()))
    assert set(counts) <= {1, 20_000}
    assert counts[-1] == 1
    assert set(errors.splitlines()) <= {'ERROR:  relation "t" does not exist', ""} | {
        line for line in errors.splitlines() if not line.startswith("ERROR")
    }


@pytest.mark.requirement("DB-2")
def test_another_database_is_not_touched(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    then = database.run.captured()
    other = Database(database.server, database.name + "other", tmp_path)
    other.sql("CREATE TABLE precious (a int)")
    run = database.use(other.server.url(other.name))
    present = run.captured()
    preview = run.plan(then, present)
    assert "is another database" in preview.blocked[0]
    assert "no other database is changed" in preview.blocked[0]
    with pytest.raises(ComponentProblem, match="no other database is changed"):
        run.component.restore(run.request(then, present))
    assert other.sql("SELECT count(*) FROM precious") == "0\n"
    other.server.run("postgres", f'DROP DATABASE "{other.name}" WITH (FORCE)')


@pytest.mark.requirement("DB-2", "RB-1")
def test_a_preview_shows_the_rows_that_would_come_and_go(database: Database) -> None:
    database.sql(
        "CREATE TABLE users (id int PRIMARY KEY)",
        "CREATE TABLE old (id int)",
        "INSERT INTO users SELECT generate_series(1, 1500)",
    )
    then = database.run.captured()
    database.sql(
        "DELETE FROM users WHERE id > 1000", "DROP TABLE old", "CREATE TABLE fresh (id int)"
    )
    before = database.dump()
    name = database.name
    for look in (True, False):
        preview = database.run.plan(then, database.run.capture(look=look))
        assert preview.blocked == ()
        assert preview.actions == (
            f"{name}: replace all content: 1,500 rows in the checkpoint, 1,000 rows now",
            f"{name}: restore the schema",
            f"{name}: remove public.fresh, which has 0 rows",
            f"{name}: recreate public.old with 0 rows",
            f"{name}: public.users from 1,000 rows to 1,500 rows",
        )
    assert database.dump() == before
    assert list(database.run.component.describe(then))[:2] == [
        f"{name}: 2 tables, 1,500 rows (PostgreSQL {then.facts['databases'][0]['version']})",
        "  public.users: 1,500 rows",
    ]


@pytest.mark.requirement("DB-2")
def test_other_connections_are_reported(database: Database) -> None:
    database.sql("CREATE TABLE t (a int)")
    then = database.run.captured()
    database.sql("INSERT INTO t VALUES (1)")
    with database.server.connected(database.name) as other:
        other("SELECT 1")
        preview = database.run.plan(then, database.run.captured())
    assert any("1 connection of psql will be blocked" in text for text in preview.warnings)


@pytest.mark.requirement("DB-2")
def test_stored_rows_and_schemas_are_never_commands(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a text)", "INSERT INTO t VALUES ('x')")
    then = database.run.captured()
    database.sql("INSERT INTO t VALUES ('y')")
    present = database.run.captured()
    mark = tmp_path / "ran"
    [rows] = [name for name in database.run.contents(then).of if name.endswith("rows/public/t")]
    start = rows.removesuffix("rows/public/t")
    hostile = f"\\! touch {mark}\n".encode()
    before = database.run.contents(then).of[start + "before"]
    forged = [
        (rows, b"x\n\\.\n" + hostile),
        (rows, b"\\.\n" + hostile),
        (rows, b"x"),
        (start + "before", before + hostile),
        (start + "before", before + b"$hf0o$;\n" + hostile + b"$hf1i$"),
        (start + "after", hostile),
        (start + "tables", database.run.contents(then).of[start + "tables"].replace(b"1}", b"2}")),
        (start + "sequences", b'[["public", "t", "1); DROP TABLE t; --", true]]'),
    ]
    for name, data in forged:
        state = database.run.altered(then, name, data)
        with pytest.raises(ComponentProblem):
            database.run.component.restore(database.run.request(state, present))
        assert not mark.exists()
        assert database.sql("SELECT a FROM t ORDER BY a") == "x\ny\n"


@pytest.mark.requirement("DB-2")
def test_several_databases_are_saved_and_one_that_fails_costs_no_other(
    database: Database, tmp_path: Path
) -> None:
    from holdfast.components.postgres.component import PostgresComponent

    other = Database(database.server, database.name + "second", tmp_path)
    for each in (database, other):
        each.sql("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    environment = {
        "PATH": str(database.server.programs),
        SOURCE: database.server.url(database.name),
        "SECOND": other.server.url(other.name),
        "THIRD": "postgresql://u:s3cret@/gone?host=/nonexistent",
    }
    both = ComponentRun(PostgresComponent([SOURCE, "SECOND"], environment, places=()), tmp_path, 0)
    then = both.captured()
    for each in (database, other):
        each.sql("INSERT INTO t VALUES (2)")
    both.restore_to(then)
    for each in (database, other):
        assert each.sql("SELECT a FROM t") == "1\n"
    three = PostgresComponent([SOURCE, "SECOND", "THIRD"], environment, places=())
    partly = ComponentRun(three, tmp_path, 0).captured()
    assert [row["database"] for row in partly.facts["databases"]] == [database.name, other.name]
    assert len(partly.problems) == 1
    assert "no server is running here" in partly.problems[0]
    assert "s3cret" not in partly.problems[0]
    twice = PostgresComponent([SOURCE, SOURCE], environment, places=())
    assert "listed twice" in ComponentRun(twice, tmp_path, 0).captured().problems[0]
    other.server.run("postgres", f'DROP DATABASE "{other.name}" WITH (FORCE)')
