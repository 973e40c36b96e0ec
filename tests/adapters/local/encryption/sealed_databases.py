"""Sealed databases for the tests of this directory: made, read in full, copied, damaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import apsw

from holdfast.adapters.local.encryption.cipher import StoreKeys
from holdfast.adapters.local.encryption.sealed_database import PAGE_BYTES
from holdfast.adapters.local.sqlite_connection import connect

KEYS = StoreKeys(bytes(range(32)))
FRAME_BYTES = 24 + PAGE_BYTES
SECRET = "the launch code is 0000"


def open_sealed(path: Path, role: str = "catalog") -> apsw.Connection:
    return connect(path, synchronous="FULL", cipher=KEYS.cipher(role))


def make(path: Path, rows: int = 300) -> None:
    """A database of several pages whose log was folded."""
    db = open_sealed(path)
    db.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT)")
    add(db, range(rows))
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()


def add(db: apsw.Connection, numbers: range) -> None:
    with db:
        db.executemany("INSERT INTO t VALUES (?,?)", ((n, f"{SECRET} {n}") for n in numbers))


def rows_of(path: Path) -> list[int]:
    """Every row there is, after SQLite has found the file to be sound."""
    db = open_sealed(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows: list[Any] = db.execute("SELECT n, text FROM t ORDER BY n").fetchall()
        assert all(text == f"{SECRET} {n}" for n, text in rows)
        return [n for n, _ in rows]
    finally:
        db.close()


def forget_memory(path: Path) -> None:
    """As after a restart of the machine: the log has to be recovered."""
    path.with_name(path.name + "-shm").unlink(missing_ok=True)


def copy(path: Path, target: Path) -> Path:
    target.mkdir()
    for name in (path.name, path.name + "-wal"):
        if path.with_name(name).exists():
            shutil.copyfile(path.with_name(name), target / name)
    return target / path.name


def flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
