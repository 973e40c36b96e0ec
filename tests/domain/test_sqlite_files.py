"""The files beside a SQLite database are recognised by their content."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.domain.sqlite_files import (
    database_of,
    has_size_of_shared_memory,
    is_shared_memory,
)


@pytest.mark.requirement("DB-1")
def test_shared_memory_is_known_as_sqlite_makes_it_and_as_it_cuts_it_down(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE rows (number)")
        made = (tmp_path / "app.db-shm").read_bytes()
    assert is_shared_memory(b"app.db-shm", made[:4])
    assert is_shared_memory(b"app.db-shm", made[:3])  # as long as a process takes it over
    assert is_shared_memory(b"app.db-shm", made[3::-1])  # of a machine with the other byte order
    assert all(has_size_of_shared_memory(size) for size in (0, 3, 4096, len(made)))
    assert not any(has_size_of_shared_memory(size) for size in (1, 20, 4095, len(made) + 1))


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        (b"app.db", b"\x18\xe2\x2d\x00"),
        (b"notes-shm", b"mine"),
        (b"notes-shm", b"\x18\xe2"),
        (b"notes-shm", b""),
        (b"notes-shm", b"\x18\xe2\x2d\x01"),
    ],
)
def test_nothing_else_is_shared_memory(name: bytes, beginning: bytes) -> None:
    assert not is_shared_memory(name, beginning)


@pytest.mark.parametrize(
    ("name", "database"),
    [
        (b"app.db-wal", b"app.db"),
        (b"app.db-shm", b"app.db"),
        (b"app.db-journal", b"app.db"),
        (b"-wal", None),
        (b"app.db", None),
    ],
)
def test_a_companion_names_its_database(name: bytes, database: bytes | None) -> None:
    assert database_of(name) == database
