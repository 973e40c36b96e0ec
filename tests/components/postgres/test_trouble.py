"""A problem with a database is reported with the way out, and no secret is ever shown."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from holdfast.components.postgres.address import find_address, parse_url
from holdfast.components.postgres.component import PostgresComponent
from holdfast.components.postgres.tools import Tools
from holdfast.ports.component import ComponentProblem
from tests.components.postgres.conftest import SOURCE, Database
from tests.support.component_runs import ComponentRun

PASSWORD = "s3cret/of:the@house%"


def reason(run: ComponentRun) -> str:
    with pytest.raises(ComponentProblem) as caught:
        run.capture()
    return str(caught.value)


@pytest.mark.requirement("DB-2")
def test_a_wrong_password_is_named_and_never_printed(database: Database) -> None:
    database.sql("CREATE ROLE clerk LOGIN PASSWORD 'right'")
    try:
        why = reason(database.use(database.server.url(database.name, "clerk", PASSWORD)))
    finally:
        database.sql("DROP ROLE clerk")
    assert "wrong password: correct the URL in HOLDFAST_POSTGRES_URL" in why
    assert PASSWORD not in why
    assert "s3cret" not in why


@pytest.mark.requirement("DB-2")
def test_the_right_password_reaches_only_the_server(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    started: list[tuple[str, ...]] = []
    real = subprocess.Popen.__init__

    def watching(self: object, arguments: object, *rest: object, **more: object) -> None:
        started.append(tuple(map(str, arguments)))  # type: ignore[call-overload]
        real(self, arguments, *rest, **more)  # type: ignore[call-overload]

    database.sql(
        f"CREATE ROLE clerk SUPERUSER LOGIN PASSWORD '{PASSWORD}'", "CREATE TABLE t (a int)"
    )
    try:
        monkeypatch.setattr(subprocess.Popen, "__init__", watching)
        run = database.use(database.server.url(database.name, "clerk", PASSWORD))
        state = run.captured()
    finally:
        monkeypatch.undo()
        database.sql("DROP ROLE clerk")
    assert len(started) >= 3
    assert "s3cret" not in repr(started)
    assert "s3cret" not in repr(state)
    assert b"s3cret" not in b"".join(run.contents(state).of.values())


@pytest.mark.requirement("DB-2")
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://admin@/nowhere?host={directory}", "no such database"),
        ("postgresql://admin@/app?host=/nonexistent", "no server is running here"),
        ("postgresql://admin@127.0.0.1:1/app", "no server at that address"),
        ("postgresql://stranger@/postgres?host={directory}", "a password is required"),
    ],
)
def test_a_server_that_cannot_be_reached_is_named(database: Database, url: str, says: str) -> None:
    assert says in reason(database.use(url.format(directory=database.server.directory)))


@pytest.mark.requirement("DB-2")
def test_a_server_that_never_answers_is_given_up_in_time(database: Database) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        run = database.use(f"postgresql://admin@127.0.0.1:{port}/app")
        run.timeout_s = 1.0
        why = reason(run)
    assert "not finished within 1 seconds" in why
    assert "component_timeout" in why


@pytest.mark.requirement("DB-2")
def test_a_table_that_a_migration_has_locked_is_named(database: Database) -> None:
    database.sql("CREATE TABLE busy (a int)")
    with database.transaction() as other:
        other("LOCK TABLE busy IN ACCESS EXCLUSIVE MODE")
        database.run.timeout_s = 4.0
        why = reason(database.run)
    assert "another connection holds a lock (a migration, for example)" in why
    database.run.timeout_s = 120.0
    assert database.run.captured().facts["databases"][0]["tables"] == 1


@pytest.mark.requirement("DB-2")
def test_a_table_that_the_user_may_not_read_is_named(database: Database) -> None:
    database.sql("CREATE TABLE closed (a int)", "CREATE ROLE reader LOGIN PASSWORD 'right'")
    try:
        why = reason(database.use(database.server.url(database.name, "reader", "right")))
    finally:
        database.sql("DROP ROLE reader")
    assert "permission denied for table closed" in why
    assert "use the database owner in HOLDFAST_POSTGRES_URL" in why


@pytest.mark.requirement("DB-2")
def test_missing_tools_are_named(database: Database, tmp_path: Path) -> None:
    assert "psql is not installed" in reason(
        database.use(database.server.url(database.name), PATH=str(tmp_path))
    )


@pytest.mark.requirement("DB-2")
def test_tools_of_another_version_are_refused(database: Database, tmp_path: Path) -> None:
    (tmp_path / "psql").symlink_to(database.server.programs / "psql")
    old = tmp_path / "pg_dump"
    old.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.24'\n")
    old.chmod(0o755)
    run = database.use(database.server.url(database.name), PATH=str(tmp_path))
    why = reason(run)
    major = database.sql("SHOW server_version_num")[:2]
    assert f"the server is PostgreSQL {major} and needs pg_dump" in why
    assert "only 9 was found" in why


@pytest.mark.requirement("DB-2")
def test_tools_are_never_taken_from_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "psql").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "psql").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ComponentProblem, match="psql is not installed"):
        _ = Tools({"PATH": ".:"}, ()).psql


@pytest.mark.requirement("DB-2")
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://u:s3cret@h/d", "contains no database URL"),
        ("s3cret", "contains no database URL"),
        ("postgresql://u:s3cret@h:port/d", "contains no database URL"),
        ("postgresql://u:s3cret@[::1/d", "contains no database URL"),
        ("postgresql://u:s3cret@h", "names no database"),
        ("postgresql://u:s3cret@h/d?schema=public", "has the option 'schema'"),
        ("postgresql://u:s3cret@h/d\nx", "contains no database URL"),
        ("postgresql://u:12/s3cret@h/d", "write @ as %40, / as %2F"),
        ("postgresql://u:12?s3cret=1@h/d", "write @ as %40, / as %2F"),
        ("postgresql://u:12@h/s3cret@h/d", "write @ as %40, / as %2F"),
        ("postgresql://u:12#s3cret@h/d", "write @ as %40, / as %2F"),
    ],
)
def test_a_url_that_is_none_is_refused_without_being_shown(url: str, says: str) -> None:
    with pytest.raises(ComponentProblem, match=says) as caught:
        parse_url(url, "DATABASE_URL")
    assert "s3cret" not in str(caught.value)


@pytest.mark.requirement("DB-2")
def test_a_url_becomes_variables_of_the_tools() -> None:
    address = parse_url(
        "postgresql+asyncpg://m%40x:p%2Fw@one:1,[::1]:2/a%20b?sslmode=require&host=two", "S"
    )
    assert address.variables == {
        "PGUSER": "m@x",
        "PGPASSWORD": "p/w",
        "PGHOST": "two",
        "PGPORT": "1,2",
        "PGDATABASE": "a b",
        "PGSSLMODE": "require",
    }
    assert "p/w" not in repr(address)
    assert address.redacted("FATAL p/w p%2Fw") == "FATAL *** ***"


@pytest.mark.requirement("DB-2")
def test_a_file_with_a_url_has_to_be_closed_to_others(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://u:s3cret@h/d\n")
    file.chmod(0o640)
    with pytest.raises(ComponentProblem, match="can be read by others: chmod 600"):
        find_address(str(file), {})
    file.chmod(0o600)
    found = find_address("~/url", {"HOME": str(tmp_path)})
    assert found is not None
    assert found.variables["PGPASSWORD"] == "s3cret"
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(ComponentProblem, match="cannot be read"):
        find_address(str(tmp_path / "link"), {})


def test_no_url_means_no_database(tmp_path: Path) -> None:
    component = PostgresComponent([SOURCE], {})
    assert not component.applies(tmp_path)
    assert PostgresComponent([SOURCE], {SOURCE: "postgresql:///x"}).applies(tmp_path)
