"""How SQLite files are opened: settings that durability and the lock discipline depend on."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

import apsw
import pytest

from holdfast.adapters.local.sqlite_connection import connect, fold_log, translate
from holdfast.domain.errors import Busy, NoSpace, StoreDamaged


def value(connection: apsw.Connection, pragma: str) -> object:
    return connection.execute(f"PRAGMA {pragma}").fetchall()[0][0]


@pytest.mark.parametrize(("synchronous", "number"), [("FULL", 2), ("NORMAL", 1), ("OFF", 0)])
def test_a_connection_logs_ahead_and_folds_the_log_only_when_asked(
    tmp_path: Path, synchronous: Literal["FULL", "NORMAL", "OFF"], number: int
) -> None:
    connection = connect(tmp_path / "file.db", synchronous=synchronous)
    assert value(connection, "journal_mode") == "wal"
    assert value(connection, "synchronous") == number
    assert value(connection, "wal_autocheckpoint") == 0
    assert value(connection, "trusted_schema") == 0
    assert value(connection, "cell_size_check") == 1
    assert connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
    assert connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1) == 1
    connection.close()


def test_the_sqlite_in_use_does_not_have_the_log_reset_corruption() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


@pytest.mark.requirement("ST-6")
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_the_file_and_its_companions_are_private(tmp_path: Path, umask: int) -> None:
    previous = os.umask(umask)
    try:
        connection = connect(tmp_path / "file.db", synchronous="FULL")
        connection.execute("CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        files = sorted(tmp_path.iterdir())
        assert [path.name for path in files] == ["file.db", "file.db-shm", "file.db-wal"]
        for path in files:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        connection.close()
    finally:
        os.umask(previous)


def test_closing_leaves_the_log_to_the_holder_of_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    connection = connect(path, synchronous="FULL")
    connection.execute("CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    before = path.read_bytes()
    log = (tmp_path / "file.db-wal").read_bytes()
    connection.close()
    assert path.read_bytes() == before
    assert (tmp_path / "file.db-wal").read_bytes() == log
    connection = connect(path, synchronous="FULL")
    assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
    connection.close()


def test_a_log_that_has_grown_is_folded_and_emptied(tmp_path: Path) -> None:
    path, log = tmp_path / "file.db", tmp_path / "file.db-wal"
    connection = connect(path, synchronous="FULL")
    connection.execute("CREATE TABLE t(x)")
    fold_log(connection, path)
    connection.execute("INSERT INTO t VALUES (zeroblob(400000))")
    fold_log(connection, path)
    assert log.stat().st_size > 400_000, "a log of a few saves is left alone"
    connection.execute("INSERT INTO t VALUES (zeroblob(5000000))")
    fold_log(connection, path)
    assert log.stat().st_size == 0
    assert path.stat().st_size > 5_000_000
    connection.close()


def test_a_link_in_the_place_of_a_database_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "file.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreDamaged, match=r"file\.db"):
        connect(tmp_path / "file.db", synchronous="FULL")
    assert (tmp_path / "elsewhere").read_bytes() == b""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (apsw.CorruptError("x"), StoreDamaged),
        (apsw.NotADBError("x"), StoreDamaged),
        (apsw.IOError("x"), StoreDamaged),
        (apsw.SQLError("x"), StoreDamaged),
        (apsw.CantOpenError("x"), StoreDamaged),
        (apsw.ReadOnlyError("x"), StoreDamaged),
        (apsw.FullError("x"), NoSpace),
        (apsw.BusyError("x"), Busy),
        (apsw.ConstraintError("x"), apsw.ConstraintError),
    ],
)
def test_trouble_of_the_database_is_reported_in_the_words_of_the_family(
    error: apsw.Error, kind: type[Exception]
) -> None:
    assert isinstance(translate(error, Path("catalog.db")), kind)
