"""undo goes step by step although a server has the project's database open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.database_writer import make_database


@pytest.mark.requirement("RB-11", "DB-1")
def test_undo_gets_past_a_database_that_another_program_has_open_for_reading(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    path, notes, cli = project / "app.db", project / "notes.txt", CommandLine(project)
    make_database(path, "wal", 1)
    for text in ("zero", "one", "two"):
        notes.write_text(text)
        cli.save(text)
    before = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT DISTINCT number FROM rows").fetchall() == [(1,)]
        assert (project / "app.db-wal").read_bytes() == b""
        for text in ("one", "zero"):
            undone = cli.json("undo", "--yes")
            assert notes.read_text() == text
            assert [step["path"] for step in undone["operations"]] == ["notes.txt"]
        assert cli("undo", "--yes").status == 4
        assert path.read_bytes() == before
