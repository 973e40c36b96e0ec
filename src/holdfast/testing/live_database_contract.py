"""The contract of `holdfast.ports.live_database`, as tests."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.domain.sqlite_files import DatabaseJob, Writing
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.live_database import LiveDatabases

_WRITE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
db.execute("UPDATE rows SET number = number + 1")
"""


def make(path: Path, number: int, mode: str = "delete") -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute("CREATE TABLE rows (number)")
        db.execute("INSERT INTO rows VALUES (?)", (number,))
        db.commit()


def number_in(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        (number,) = db.execute("SELECT number FROM rows").fetchone()
        return int(number)


def another_program_can_write(path: Path) -> bool:
    command = [sys.executable, "-c", _WRITE, str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def opened(directory: Path) -> Iterator[int]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


class LiveDatabasesContract:
    """Subclass it, and define which adapter to test."""

    def databases(self) -> LiveDatabases:
        raise NotImplementedError

    def test_a_paused_database_takes_no_transaction_until_the_block_ends(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "app.db"
        make(path, 1)
        with opened(tmp_path) as fd:
            with self.databases().pause_database(b"app.db", dir_fd=fd) as paused:
                assert paused
                assert not another_program_can_write(path)
            assert another_program_can_write(path)
        assert number_in(path) == 2

    def test_any_other_file_counts_as_paused(self, tmp_path: Path) -> None:
        (tmp_path / "notes").write_bytes(b"x" * 1024)
        databases = self.databases()
        with opened(tmp_path) as fd:
            for name in (b"notes", b"missing"):
                with databases.pause_database(name, dir_fd=fd) as paused:
                    assert paused

    def test_a_database_is_in_use_while_a_program_has_it_open(self, tmp_path: Path) -> None:
        path, databases = tmp_path / "app.db", self.databases()
        make(path, 1, "wal")
        (tmp_path / "notes").write_bytes(b"x" * 1024)
        with opened(tmp_path) as fd:
            assert not databases.is_database_in_use(b"app.db", dir_fd=fd)
            with closing(sqlite3.connect(path)) as user:
                user.execute("SELECT * FROM sqlite_schema").fetchall()
                assert databases.is_database_in_use(b"app.db", dir_fd=fd)
            assert not databases.is_database_in_use(b"app.db", dir_fd=fd)
            for name in (b"notes", b"missing"):
                assert not databases.is_database_in_use(name, dir_fd=fd)

    @pytest.mark.parametrize("mode", ["delete", "wal"])
    def test_a_held_database_can_be_read(self, tmp_path: Path, mode: str) -> None:
        path = tmp_path / "app.db"
        make(path, 1, mode)
        with opened(tmp_path) as fd, self.databases().hold_database(b"app.db", dir_fd=fd) as held:
            assert held
            assert path.read_bytes().startswith(b"SQLite format 3\0")

    def test_an_overwritten_database_has_the_wanted_content(self, tmp_path: Path) -> None:
        path, area = tmp_path / "app.db", tmp_path / "area"
        area.mkdir()
        make(path, 1)
        make(area / "0", 2)
        content = (area / "0").read_bytes()
        job = DatabaseJob(
            b"app.db",
            slots={b"": b"0"},
            wanted={b"": digest_of(content)},
            known={b"": digest_of(path.read_bytes())},
        )
        with opened(tmp_path) as fd, opened(area) as area_fd:
            written = self.databases().overwrite_database(job, dir_fd=fd, area_fd=area_fd)
        assert written.how is Writing.EXACT
        assert path.read_bytes() == content

    def test_a_database_that_is_none_stays_as_it_is(self, tmp_path: Path) -> None:
        path, area = tmp_path / "app.db", tmp_path / "area"
        area.mkdir()
        path.write_bytes(b"no database" * 100)
        make(area / "0", 2)
        wanted = digest_of((area / "0").read_bytes())
        job = DatabaseJob(b"app.db", slots={b"": b"0"}, wanted={b"": wanted})
        with opened(tmp_path) as fd, opened(area) as area_fd:
            written = self.databases().overwrite_database(job, dir_fd=fd, area_fd=area_fd)
        assert written.how is Writing.UNSUITABLE
        assert path.read_bytes() == b"no database" * 100
