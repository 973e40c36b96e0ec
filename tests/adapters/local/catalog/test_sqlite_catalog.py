"""The SQLite catalog on a disk that fails, with rows that were tampered with, and with old logs."""

from __future__ import annotations

import contextlib
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local import sqlite_connection
from holdfast.adapters.local.catalog.migrations import MIGRATIONS
from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.domain.errors import NoSpace, StoreDamaged
from holdfast.domain.sessions import Session
from holdfast.ports.catalog import all_checkpoints
from holdfast.testing.faulty_filesystem import SqliteFaults
from holdfast.testing.samples import (
    ONE,
    CatalogOpening,
    checkpoint_id,
    new_checkpoint,
    new_operation,
)


def open_catalog(path: Path) -> SqliteCatalog:
    catalog = SqliteCatalog(path)
    catalog.migrate()
    return catalog


def fill(path: Path, *numbers: int) -> None:
    with closing(open_catalog(path)) as catalog:
        CatalogOpening().fill(catalog, *(new_checkpoint(number) for number in numbers))


def save_second(path: Path) -> None:
    """What a save does: checkpoint, operation and head in one transaction (I3)."""
    with closing(open_catalog(path)) as catalog, catalog.transaction() as transaction:
        transaction.add_checkpoint(new_checkpoint(2, parent=1))
        transaction.add_operation(new_operation(2))
        transaction.set_head(ONE, checkpoint_id(2))


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_disk_that_fails_at_any_write_leaves_all_of_a_transaction_or_none(
    tmp_path: Path, error: type[apsw.Error]
) -> None:
    number, failed = 0, True
    while failed:
        number += 1
        path = tmp_path / f"{number}.db"
        fill(path, 1)
        with SqliteFaults(number, error) as faults:
            expected = NoSpace if error is apsw.FullError else StoreDamaged
            with contextlib.suppress(expected):
                save_second(path)
        failed = bool(faults.injected)
        with closing(open_catalog(path)) as catalog:
            ids = [checkpoint.id for checkpoint in all_checkpoints(catalog)]
            done = [operation.checkpoint for operation in catalog.operations(ONE)]
            assert ids == done, "a checkpoint and its operation come together (I3)"
            assert ids[0] == checkpoint_id(1)
            session = catalog.session(ONE)
            assert session is not None
            assert (session.head == checkpoint_id(2)) == (len(ids) == 2)
            assert list(catalog.check()) == []
            CatalogOpening().fill(catalog, new_checkpoint(3))
    assert number > 2


def test_a_checkpoint_without_its_operation_is_found_by_check(tmp_path: Path) -> None:
    with closing(open_catalog(tmp_path / "catalog.db")) as catalog:
        with catalog.transaction() as transaction:
            transaction.add_session(Session(ONE, 1))
            transaction.add_checkpoint(new_checkpoint(1))
            transaction.set_head(ONE, checkpoint_id(9))
        problems = list(catalog.check())
    assert len(problems) == 2
    assert all("I3" in problem for problem in problems)


TAMPERED = {
    "an unknown kind": "UPDATE checkpoints SET kind='?'",
    "a short digest": "UPDATE checkpoints SET tree=x'00'",
    "text for a digest": "UPDATE checkpoints SET tree='text'",
    "tool calls that are no JSON": "UPDATE checkpoints SET tool_calls='{'",
    "tags that are no list": "UPDATE checkpoints SET tags='5'",
    "deeply nested JSON": f"UPDATE checkpoints SET tool_calls='{'[' * 100_000}'",
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_row_that_makes_no_sense_is_damage_of_the_store(tmp_path: Path, change: str) -> None:
    path = tmp_path / "catalog.db"
    fill(path, 1)
    connection = connect(path, synchronous="FULL")
    connection.execute(change)
    connection.close()
    with closing(open_catalog(path)) as catalog, pytest.raises(StoreDamaged):
        catalog.history(ONE)


@pytest.mark.parametrize("table", ["sessions", "operations"])
def test_a_session_or_operation_that_makes_no_sense_is_damage_of_the_store(
    tmp_path: Path, table: str
) -> None:
    path = tmp_path / "catalog.db"
    fill(path, 1)
    connection = connect(path, synchronous="FULL")
    column = "status" if table == "sessions" else "kind"
    connection.execute(f"UPDATE {table} SET {column}='?'")
    connection.close()
    with closing(open_catalog(path)) as catalog, pytest.raises(StoreDamaged):
        list(catalog.sessions() if table == "sessions" else catalog.operations(ONE))


@pytest.mark.parametrize("garbage", [b"not a database", b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_file_that_is_no_catalog_is_damage_and_is_left_alone(
    tmp_path: Path, garbage: bytes
) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(garbage)
    with pytest.raises(StoreDamaged, match=r"catalog\.db"):
        SqliteCatalog(path)
    assert path.read_bytes() == garbage


@pytest.mark.parametrize("name", ["CAST(x'303031ff' AS TEXT)", "x'3030'"], ids=["text", "type"])
@pytest.mark.requirement("RL-4", "ST-8")
def test_a_list_of_steps_that_makes_no_sense_is_damage_of_the_store(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "catalog.db"
    fill(path, 1)
    with closing(connect(path, synchronous="FULL")) as connection:
        connection.execute(f"UPDATE migrations SET name={name} WHERE name=?", (MIGRATIONS[0].name,))
        assert connection.changes() == 1
    with pytest.raises(StoreDamaged, match="damaged"):
        SqliteCatalog(path)


@pytest.mark.requirement("RL-4")
def test_text_that_is_no_longer_text_is_damage_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    fill(path, 1)
    with closing(connect(path, synchronous="FULL")) as connection:
        for table, column in (("settings", "key"), ("facts", "value"), ("checkpoints", "kind")):
            connection.execute(f"UPDATE {table} SET {column}=CAST(x'ff' AS TEXT)")
        connection.execute("INSERT OR REPLACE INTO settings VALUES (CAST(x'ff' AS TEXT), 'x')")
        connection.execute(
            "INSERT OR REPLACE INTO facts VALUES ('current_session', CAST(x'ff' AS TEXT))"
        )
    with closing(open_catalog(path)) as catalog:
        for read in (catalog.settings, catalog.current_session, catalog.counts):
            with pytest.raises(StoreDamaged):
                read()
        assert list(catalog.check())


def test_a_transaction_survives_although_its_log_was_never_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill: the log is all there is, and its index has to be made again."""
    monkeypatch.setattr(sqlite_connection, "_FOLD_AT_BYTES", 1 << 40)
    path = tmp_path / "catalog.db"
    fill(path, 1)
    save_second(path)
    (tmp_path / "catalog.db-shm").unlink()
    assert (tmp_path / "catalog.db-wal").stat().st_size > 0
    with closing(open_catalog(path)) as catalog:
        assert len(catalog.history(ONE)) == 2


def test_a_log_torn_at_its_end_loses_only_the_last_transaction(tmp_path: Path) -> None:
    path, log = tmp_path / "catalog.db", tmp_path / "catalog.db-wal"
    fill(path, 1)
    committed = log.stat().st_size
    save_second(path)
    whole = log.read_bytes()
    for length in range(committed, len(whole), 97):
        (tmp_path / "catalog.db-shm").unlink(missing_ok=True)
        log.write_bytes(whole[:length])
        with closing(open_catalog(path)) as catalog:
            assert [c.id for c in catalog.history(ONE)] == [checkpoint_id(1)]
            assert list(catalog.check()) == []
