"""Migrations: each commits with its record, and a store from the future is left as it is (ST-8)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.catalog import rows
from holdfast.adapters.local.catalog.migrations import (
    MIGRATIONS,
    Migration,
    applied_migrations,
    migrate,
)
from holdfast.adapters.local.catalog.rows import checksum_of
from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.domain.errors import NewerStore
from holdfast.domain.ids import SessionId
from holdfast.testing.faulty_filesystem import SqliteFaults
from holdfast.testing.samples import ONE, CatalogOpening, new_checkpoint, new_operation
from tests.adapters.local.tree_pictures import picture

pytestmark = pytest.mark.requirement("ST-8")

LATER = Migration(
    "9001-later",
    "CREATE TABLE later (x); INSERT INTO later VALUES (1);"
    "ALTER TABLE sessions ADD COLUMN mood TEXT",
)
BROKEN = Migration(
    "9002-broken",
    "CREATE TABLE half (x); INSERT INTO half VALUES (1); DELETE FROM settings;"
    "INSERT INTO no_such_table VALUES (1)",
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    connection = connect(tmp_path / "catalog.db", synchronous="FULL")
    yield connection
    connection.close()


def content(db: apsw.Connection) -> list[object]:
    """The schema and every row of every table."""
    tables = db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    rows = [
        db.execute(f"SELECT * FROM {name}").fetchall()
        for name, sql in tables
        if str(sql).startswith("CREATE TABLE")
    ]
    return [tables, rows]


def test_names_are_unique_and_in_the_order_they_apply() -> None:
    names = [migration.name for migration in MIGRATIONS]
    assert names == sorted(set(names))


@pytest.mark.parametrize("known", range(len(MIGRATIONS) + 1))
def test_a_catalog_left_at_any_earlier_step_is_brought_up_to_date(
    tmp_path: Path, known: int
) -> None:
    path = tmp_path / "catalog.db"
    connection = connect(path, synchronous="FULL")
    migrate(connection, MIGRATIONS[:known])
    assert len(applied_migrations(connection)) == known
    connection.close()
    with closing(SqliteCatalog(path)) as catalog:
        assert catalog.is_migrated() == (known == len(MIGRATIONS))
        catalog.migrate()
        assert catalog.is_migrated()
        CatalogOpening().fill(catalog, new_checkpoint(1))
        assert len(catalog.history(ONE)) == 1
        assert list(catalog.check()) == []


def test_a_step_describes_the_tables_of_its_own_time(
    db: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that a later step adds is none that the earlier ones may ask for."""
    for table, columns in rows.SEALED_COLUMNS.items():
        monkeypatch.setitem(rows.SEALED_COLUMNS, table, columns.replace(", c", ", mood, c"))
    migrate(db, (*MIGRATIONS, LATER))
    assert applied_migrations(db)[-1] == LATER.name


def test_a_step_is_applied_once(db: apsw.Connection) -> None:
    migrate(db)
    before = content(db)
    migrate(db)
    assert content(db) == before
    migrate(db, (*MIGRATIONS, LATER))
    migrate(db, (*MIGRATIONS, LATER))
    assert db.execute("SELECT count(*) FROM later").fetchall() == [(1,)]
    assert applied_migrations(db) == (*(m.name for m in MIGRATIONS), LATER.name)


def test_a_step_that_fails_leaves_no_trace_and_earlier_ones_stay(db: apsw.Connection) -> None:
    migrate(db)
    db.execute("INSERT INTO settings VALUES ('a', '1')")
    with pytest.raises(apsw.SQLError):
        migrate(db, (*MIGRATIONS, LATER, BROKEN))
    assert applied_migrations(db) == (*(m.name for m in MIGRATIONS), LATER.name)
    after_later = content(db)
    with pytest.raises(apsw.SQLError):
        migrate(db, (*MIGRATIONS, LATER, BROKEN))
    assert content(db) == after_later
    assert db.execute("SELECT value FROM settings").fetchall() == [("1",)]


def test_a_disk_that_fails_during_a_step_leaves_the_whole_step_or_none_of_it(
    tmp_path: Path,
) -> None:
    number, failed = 0, True
    while failed:
        number += 1
        path = tmp_path / f"{number}.db"
        connection = connect(path, synchronous="FULL")
        migrate(connection)
        before = content(connection)
        connection.close()
        with SqliteFaults(number, apsw.FullError) as faults:
            connection = connect(path, synchronous="FULL")
            try:
                migrate(connection, (*MIGRATIONS, LATER))
            except apsw.FullError:
                pass
            finally:
                connection.close()
        failed = bool(faults.injected)
        connection = connect(path, synchronous="FULL")
        if LATER.name not in applied_migrations(connection):
            assert content(connection) == before
        migrate(connection, (*MIGRATIONS, LATER))
        assert connection.execute("SELECT count(*) FROM later").fetchall() == [(1,)]
        connection.close()
    assert number > 3


def test_a_catalog_with_an_unknown_step_is_refused_and_not_changed(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    directory.mkdir()
    path = directory / "catalog.db"
    connection = connect(path, synchronous="FULL")
    migrate(connection, (*MIGRATIONS, LATER))
    connection.close()
    before = picture(directory)
    for _ in range(2):
        with pytest.raises(NewerStore, match=LATER.name):
            SqliteCatalog(path)
    # The index of the log is rebuilt by its readers; it says nothing of its own.
    after = picture(directory)
    assert after.keys() == before.keys()
    assert {name for name in before if after[name] != before[name]} <= {"catalog.db-shm"}


def test_rows_of_an_earlier_step_are_kept_and_damaged_ones_do_not_become_sound(
    tmp_path: Path,
) -> None:
    """A step that widens rows seals them again: only those that were sealed before."""
    path = tmp_path / "catalog.db"
    connection = connect(path, synchronous="FULL")
    migrate(connection, MIGRATIONS[:3])
    session = ("s", 1, "active", None, None, "c1", None)
    seal = checksum_of("sessions", session)
    connection.execute("INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?)", (*session, seal))
    for sequence in (1, 2, 9):
        row = (sequence, "checkpoint", "s", 5, f"c{sequence}", None, None, None, None)
        seal = checksum_of("operations", row)
        marks = ",".join("?" * 10)
        connection.execute(f"INSERT INTO operations VALUES ({marks})", (*row, seal))
    connection.execute("UPDATE operations SET at_ns=6 WHERE sequence=2")
    connection.execute("DELETE FROM operations WHERE sequence=9")
    migrate(connection)
    assert connection.execute("PRAGMA freelist_count").fetchall() == [(0,)]
    connection.close()
    with closing(SqliteCatalog(path)) as catalog:
        found = catalog.session(SessionId("s"))
        assert found is not None
        assert (found.head, found.round) == ("c1", 1)
        problems = list(catalog.check())
        assert any("operations (2) does not match its checksum" in p for p in problems)
        assert not any("(1)" in problem for problem in problems)
        with catalog.transaction() as transaction:
            added = transaction.add_operation(new_operation(1, SessionId("s")))
        assert added.sequence == 10
