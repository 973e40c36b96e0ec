"""undo goes step by step although a server has the project's database open."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.engine.undo.causes import CausesByLog
from holdfast.engine.vault import Vault
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.web.client import running
from tests.support.database_writer import ROWS, hammering, make_database, state_of
from tests.support.scripted_agent import ScriptedAgent

_PAUSE_S = 0.002
"""Between two transactions of a server, as of one that serves somebody."""


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


@pytest.mark.parametrize("mode", ["wal", "persist"])
@pytest.mark.requirement("RB-11", "DB-1")
def test_undo_brings_back_deleted_files_beside_a_server_that_keeps_writing(
    tmp_path: Path, mode: str
) -> None:
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    (project / "src" / "app.py").write_text("old")
    path, cli = project / "app.db", CommandLine(project)
    make_database(path, mode)
    cli.save("the sources as they were")
    (project / "src" / "app.py").write_text("new")
    agent = ScriptedAgent(project)
    agent.start()
    with hammering(path, mode, pause_s=_PAUSE_S) as server:
        agent.ask("tidy up")
        agent.run("rm -rf src")
        agent.run("ls")
        agent.run("ls -l")

        shown = cli("undo", "--yes")
        assert shown.status == 0, shown
        assert (project / "src" / "app.py").read_text() == "new"
        assert 'Undid the Bash call "rm -rf src"' in shown.out
        assert "app.db" in shown.out + shown.err
        assert "is in use by another program" in shown.out + shown.err

        shown = cli("undo", "--yes")
        assert shown.status == 0, shown
        assert (project / "src" / "app.py").read_text() == "old"

        assert cli("redo", "--yes").status == 0
        assert (project / "src" / "app.py").read_text() == "new"
        assert server.poll() is None
    state_of(path)


@pytest.mark.requirement("RB-11", "DB-1")
def test_a_call_that_names_a_database_in_use_is_a_step_of_its_own(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    path, notes, cli = project / "app.db", project / "notes.txt", CommandLine(project)
    make_database(path, "wal", 1)
    agent = ScriptedAgent(project)
    agent.start()
    with server_of(path):
        agent.write("notes.txt", "useful")
        agent.run(f"{sys.executable} -c 'import sqlite3; {_ERASE}'")
        assert _count(path) == 0

        shown = cli("undo", "--yes")
        assert shown.status == 0, shown
        assert notes.read_text() == "useful"
        assert _count(path) == ROWS

        shown = cli("undo", "--yes")
        assert shown.status == 0, shown
        assert not notes.exists()


@pytest.mark.requirement("RB-11", "WB-1")
def test_an_undo_over_http_is_carried_out_as_previewed_although_a_server_keeps_writing(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    path, notes, cli = project / "app.db", project / "notes.txt", CommandLine(project)
    make_database(path, "wal")
    notes.write_text("kept")
    cli.save("the notes as they were")
    notes.unlink()
    with hammering(path, "wal", pause_s=_PAUSE_S), running(project) as client:
        previewed = client.post("/api/undo", {"dry_run": True})
        before = state_of(path)
        while state_of(path) == before:
            time.sleep(0.01)
        client.post("/api/undo", {"plan": previewed["plan"]})
    assert notes.read_text() == "kept"


@pytest.mark.requirement("RB-11", "DB-1")
def test_a_database_that_a_server_created_is_a_step_of_its_own(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    path, notes, cli = project / "app.db", project / "notes.txt", CommandLine(project)
    notes.write_text("old")
    cli.save("old notes")
    notes.write_text("new")
    cli.save("new notes")
    make_database(path, "wal")
    with server_of(path):
        undone = cli.json("undo", "--yes")
        assert {step["path"][:6] for step in undone["operations"]} == {"app.db"}
        assert notes.read_text() == "new"


@pytest.mark.requirement("PF-7")
def test_however_many_states_are_passed_over_the_tool_log_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    path, notes, cli = project / "app.db", project / "notes.txt", CommandLine(project)
    make_database(path, "persist")
    notes.write_text("old")
    cli.save("old notes")
    notes.write_text("new")
    reads = 0
    read = CausesByLog.__init__

    def counted(self: CausesByLog, vault: Vault) -> None:
        nonlocal reads
        reads += 1
        read(self, vault)

    with server_of(path):
        for number in range(5):
            _run(path, f"UPDATE rows SET number={number + 10}")
            cli.save(f"rows of {number}")
        monkeypatch.setattr(CausesByLog, "__init__", counted)
        assert cli("undo", "--yes").status == 0
    assert notes.read_text() == "old"
    assert reads <= 2, "once to find the step, once to describe it"


_SERVER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT * FROM rows").fetchall()
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def server_of(path: Path) -> Iterator[None]:
    """A program that has the database open."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"open\n"
        yield
        server.stdin.close()


def _run(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


def _count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM rows").fetchone()[0])


_ERASE = 'db = sqlite3.connect("app.db"); db.execute("DELETE FROM rows"); db.commit()'


@pytest.mark.requirement("RB-11", "DB-1")
def test_changes_of_a_database_in_use_are_undone_if_nothing_else_has_changed(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    path, cli = project / "app.db", CommandLine(project)
    make_database(path, "wal", 1)
    cli.save("the rows as they were")
    with server_of(path):
        _run(path, "DELETE FROM rows")
        undone = cli.json("undo", "--yes")
        assert _count(path) == ROWS
    assert not any("in use" in remark for remark in undone["remarks"])


@pytest.mark.requirement("RB-11", "DB-1")
def test_undo_of_turns_gets_past_a_server_that_keeps_writing(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    path, cli = project / "app.db", CommandLine(project)
    make_database(path, "wal", 1)
    agent = ScriptedAgent(project)
    agent.start()
    with server_of(path):
        for number in (1, 2):
            agent.ask(f"write {number}")
            agent.write(f"{number}.txt", "text")
        for number in (2, 1):
            _run(path, "UPDATE rows SET number = number + 1")
            assert cli("undo", "--turn", "--yes").status == 0
            assert not (project / f"{number}.txt").exists()
            _run(path, "UPDATE rows SET number = number + 1")


@pytest.mark.requirement("RB-11", "CP-12")
def test_undo_refuses_after_a_lost_directory_beside_a_server_that_keeps_writing(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shop"
    (project / "node_modules" / "a").mkdir(parents=True)
    (project / "node_modules" / "a" / "index.js").write_text("a")
    (project / "package.json").write_text("{}")
    notes, cli = project / "notes.txt", CommandLine(project)
    notes.write_text("old")
    path = project / "app.db"
    make_database(path, "wal")
    agent = ScriptedAgent(project)
    agent.start()
    with hammering(path, "wal", pause_s=_PAUSE_S):
        agent.ask("tidy up")
        agent.write("notes.txt", "new")
        agent.run("rm -rf node_modules")
        agent.run("ls")
        answer = cli("undo", "--yes")
    assert answer.status == 5
    assert "deleted node_modules" in answer.err
    assert notes.read_text() == "new"


@pytest.mark.requirement("RB-11", "DB-1")
def test_undo_ends_beside_a_server_that_keeps_writing(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    notes, cli = project / "notes.txt", CommandLine(project)
    notes.write_text("old")
    path = project / "app.db"
    make_database(path, "wal")
    cli.save("first")
    notes.write_text("new")
    with hammering(path, "wal", pause_s=_PAUSE_S):
        assert cli("undo", "--yes").status == 0
        assert notes.read_text() == "old"
        answer = cli("undo", "--yes")
        assert answer.status == 4
        assert "only app.db has changed" in answer.err


@pytest.mark.requirement("RB-11", "DB-1")
def test_undo_gets_past_restores_that_left_out_a_database_in_use(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / "var").mkdir(parents=True)
    (project / ".gitignore").write_text("var/\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    notes, cli = project / "notes.txt", CommandLine(project)
    notes.write_text("old")
    path, cache = project / "app.db", project / "var" / "cache.db"
    make_database(path, "wal")
    make_database(cache, "wal")
    first = cli.save("first")
    agent = ScriptedAgent(project)
    agent.start()
    with hammering(path, "wal", pause_s=_PAUSE_S), hammering(cache, "wal", pause_s=_PAUSE_S):
        agent.write("notes.txt", "new")
        agent.run("sqlite3 var/cache.db 'select 1' || true")  # so it is saved from now on
        last = cli.save("last")
        cli.json("restore", first, "--yes")
        cli.json("restore", last, "--yes")
        for text in ("old", "new"):
            assert notes.read_text() != text
            assert cli("undo", "--yes").status == 0
            assert notes.read_text() == text
