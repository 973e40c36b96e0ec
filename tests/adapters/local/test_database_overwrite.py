"""A live SQLite database is brought to another state through SQLite, or stays as it is (DB-1)."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.adapters.local import database_exact, database_overwrite
from holdfast.adapters.local.live_database import failure_of, overwrite_in_process
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.sqlite_files import PerhapsWritten, Writing
from holdfast.ports.live_database import LiveDatabases
from holdfast.testing.live_database_contract import LiveDatabasesContract
from tests.support.database_writer import make_database, state_of
from tests.support.dying_overwrite import job_for, write

pytestmark = [pytest.mark.requirement("DB-1")]

ROOT = Path(__file__).resolve().parents[3]
STATES = ["delete", "wal", "with a log", "with a hot journal", "small pages", "grown", "empty"]

_CRASH = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute(sys.argv[2])
for statement in sys.argv[3:]:
    db.execute(statement)
os._exit(0)
"""


def _make(directory: Path, state: str, number: int) -> None:
    """A database whose rows all have the number, however it is kept."""
    directory.mkdir(parents=True)
    path = directory / "app.db"
    if state == "empty":
        path.touch()
        return
    if state == "small pages":
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA page_size=1024")
            db.execute("VACUUM")
    first = number + 10 if state == "with a log" else number
    make_database(path, "wal" if state in ("wal", "with a log") else "delete", first)
    if state == "with a log":
        _crash(path, "PRAGMA wal_autocheckpoint=0", f"UPDATE rows SET number={number}")
        assert (directory / "app.db-wal").stat().st_size > 0
        (directory / "app.db-shm").unlink()
    if state == "with a hot journal":
        doing = ("BEGIN EXCLUSIVE", "UPDATE rows SET number=77, filling=number || filling")
        _crash(path, "PRAGMA cache_size=1", *doing)
        assert (directory / "app.db-journal").stat().st_size > 0
    if state == "grown":
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE more (text TEXT)")
            db.executemany("INSERT INTO more VALUES (?)", [("y" * 900,)] * 400)
            db.commit()


def _crash(path: Path, *statements: str) -> None:
    subprocess.run([sys.executable, "-c", _CRASH, str(path), *statements], check=True)


def _state_of_copy(directory: Path, place: Path) -> int | None:
    """None for one without a table. A copy, because opening it rolls back and folds in the log."""
    shutil.copytree(directory, place)
    with closing(sqlite3.connect(place / "app.db")) as db:
        if db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            return None
    return state_of(place / "app.db")


def _files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.requirement("RB-5", "RB-9")
@pytest.mark.parametrize("wanted", STATES[:-1])
@pytest.mark.parametrize("live", STATES)
def test_a_database_that_is_not_open_becomes_the_wanted_one_to_the_byte(
    tmp_path: Path, live: str, wanted: str
) -> None:
    _make(tmp_path / "live", live, 1)
    _make(tmp_path / "wanted", wanted, 2)
    inode = (tmp_path / "live/app.db").stat().st_ino
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.EXACT
    assert _files(tmp_path / "live") == _files(tmp_path / "wanted")
    found = (tmp_path / "live/app.db").stat()
    assert found.st_ino == inode
    assert stat.S_IMODE(found.st_mode) == job.mode
    assert found.st_mtime_ns == job.mtime_ns
    assert _state_of_copy(tmp_path / "live", tmp_path / "copy") == 2


@pytest.mark.in_memory
@pytest.mark.requirement("RB-3")
@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ("delete", "delete"),
        ("wal", "wal"),
        ("with a log", "with a log"),
        ("with a hot journal", "with a hot journal"),
        ("grown", "with a log"),
        ("wal", "small pages"),
        ("empty", "with a hot journal"),
    ],
)
def test_a_reader_after_a_death_at_any_change_finds_the_old_state_or_the_new_one(
    tmp_path: Path, live: str, wanted: str
) -> None:
    _make(tmp_path / "live", live, 1)
    _make(tmp_path / "wanted", wanted, 2)
    command = [sys.executable, "-m", "tests.support.dying_overwrite", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    deaths = [json.loads(line) for line in output.splitlines()]
    assert len(deaths) > 10
    assert [death["status"] for death in deaths] == [9] * (len(deaths) - 1) + [0]
    old = None if live == "empty" else 1
    seen = []
    for death in deaths:
        place = tmp_path / f"death-{death['at']}"
        seen.append(_state_of_copy(place / "found", place / "copy"))
        assert death["again"] == Writing.EXACT, death
        assert _files(place / "live") == _files(tmp_path / "wanted"), death
    assert set(seen) == {old, 2}
    assert seen == sorted(seen, key=lambda state: state == 2)  # no way back once it is there


@pytest.mark.requirement("RB-4", "RB-6")
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_what_another_process_wrote_after_it_was_saved_is_put_aside_as_one_file(
    tmp_path: Path, mode: str
) -> None:
    _make(tmp_path / "live", mode, 1)
    _make(tmp_path / "wanted", mode, 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    _crash(tmp_path / "live/app.db", "PRAGMA wal_autocheckpoint=0", "UPDATE rows SET number=3")
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.aside
    assert sorted(path.name for path in (tmp_path / "area").iterdir()) == ["aside", "slot"]
    assert state_of(tmp_path / "area/aside") == 3
    assert state_of(tmp_path / "live/app.db") == 2


@pytest.mark.requirement("RB-6")
@pytest.mark.parametrize(
    ("mode", "statement"),
    [("delete", "BEGIN IMMEDIATE"), ("delete", "BEGIN EXCLUSIVE"), ("wal", "BEGIN IMMEDIATE")],
)
def test_a_database_that_another_process_keeps_locked_stays_as_it_is(
    tmp_path: Path, mode: str, statement: str
) -> None:
    _make(tmp_path / "live", mode, 1)
    _make(tmp_path / "wanted", mode, 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    before = _files(tmp_path / "live")
    with _holding(tmp_path / "live/app.db", statement):
        written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.BUSY
    assert _files(tmp_path / "live")["app.db"] == before["app.db"]
    assert state_of(tmp_path / "live/app.db") == 1


def test_pages_of_another_size_wait_until_the_log_is_not_open(tmp_path: Path) -> None:
    _make(tmp_path / "live", "wal", 1)
    _make(tmp_path / "wanted", "small pages", 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    with _holding(tmp_path / "live/app.db", "SELECT count(*) FROM rows"):
        written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.BUSY
    assert state_of(tmp_path / "live/app.db") == 1


@pytest.mark.parametrize("state", ["wal", "delete"])
def test_programs_that_have_it_open_go_on_with_the_new_state(tmp_path: Path, state: str) -> None:
    _make(tmp_path / "live", state, 1)
    _make(tmp_path / "wanted", state, 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    doing = "UPDATE rows SET number = number + 1"
    with _holding(tmp_path / "live/app.db", "SELECT count(*) FROM rows") as program:
        written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
        assert written.how is Writing.IN_USE
        print(doing, file=program.stdin, flush=True)
        assert program.stdout is not None
        assert program.stdout.readline() == "done\n"
    assert state_of(tmp_path / "live/app.db") == 3


@pytest.mark.requirement("RB-6")
def test_what_others_write_once_the_system_has_let_them_in_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux breaks a lease when a program has waited for 45 s to open the file. A database of some
    gigabytes takes that long."""
    _make(tmp_path / "live", "delete", 1)
    _make(tmp_path / "wanted", "delete", 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")

    same_content = database_exact.same_content

    def compare_for_long(fd: int, source: int, size: int) -> bool:
        same = same_content(fd, source, size)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        doing = ("UPDATE rows SET number=3", "PRAGMA user_version=1")
        _crash(tmp_path / "live/app.db", *doing)
        return same

    monkeypatch.setattr(database_exact, "same_content", compare_for_long)
    monkeypatch.setattr(database_exact, "_WHILE_OTHERS_WAIT_S", 0.0)
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.IN_USE
    assert state_of(tmp_path / "live/app.db") == 3


@pytest.mark.requirement("RB-3")
def test_a_failure_after_the_transaction_is_distinguished_from_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(tmp_path / "live", "delete", 1)
    _make(tmp_path / "wanted", "with a log", 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(database_exact, "_place_companions", fail)
    with pytest.raises(PerhapsWritten, match="no space left"):
        write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert state_of(tmp_path / "live/app.db") == 2


@pytest.mark.requirement("RB-3")
def test_a_program_that_locks_it_right_after_the_transaction_does_not_make_it_look_unwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(tmp_path / "live", "delete", 1)
    _make(tmp_path / "wanted", "delete", 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    require = database_overwrite._require_written

    def locked_out(*arguments: Any) -> None:
        with _holding(tmp_path / "live/app.db", "BEGIN EXCLUSIVE"):
            require(*arguments)

    monkeypatch.setattr(database_overwrite, "_require_written", locked_out)
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how in (Writing.EXACT, Writing.IN_USE)
    assert state_of(tmp_path / "live/app.db") == 2


@pytest.mark.requirement("RB-9")
def test_a_failure_of_sqlite_is_reported_by_what_it_is() -> None:
    """Of a backup SQLite itself says "not an error"."""
    full = failure_of(apsw.FullError("not an error"))
    assert (full.errno, full.strerror) == (errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not isinstance(full, PerhapsWritten)
    other = failure_of(apsw.exception_for(apsw.SQLITE_IOERR_WRITE))
    assert other.strerror == "SQLite cannot write to the database (SQLITE_IOERR_WRITE)"
    assert isinstance(other, PerhapsWritten)


@pytest.mark.parametrize("said", ["", "Imported\n", "hello\n", "cnone.such\nname\n.", "N."])
def test_a_process_that_says_something_else_may_have_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """A start file of the user's Python may print: whatever that is, it is no answer."""
    monkeypatch.setattr(
        "holdfast.adapters.local.live_database._PROGRAM", f"print({said!r}, end='')"
    )
    _make(tmp_path / "live", "delete", 1)
    fd = os.open(tmp_path / "live", os.O_RDONLY)
    try:
        with pytest.raises(PerhapsWritten, match="has died"):
            overwrite_in_process(job_for(tmp_path / "live", tmp_path / "live"), fd, fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize("damaged", ["live", "wanted"])
def test_what_sqlite_cannot_read_is_not_written_by_way_of_it(tmp_path: Path, damaged: str) -> None:
    _make(tmp_path / "live", "delete", 1)
    _make(tmp_path / "wanted", "delete", 2)
    (tmp_path / damaged / "app.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5104)
    (tmp_path / "area").mkdir()
    before = _files(tmp_path / "live")
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.UNSUITABLE
    assert _files(tmp_path / "live") == before


def test_a_file_with_a_second_name_and_a_link_are_left_alone(tmp_path: Path) -> None:
    _make(tmp_path / "live", "delete", 1)
    _make(tmp_path / "wanted", "delete", 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    os.link(tmp_path / "live/app.db", tmp_path / "second")
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.UNSUITABLE
    (tmp_path / "live/app.db").unlink()
    (tmp_path / "live/app.db").symlink_to(tmp_path / "second")
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.UNSUITABLE
    assert state_of(tmp_path / "second") == 1


@pytest.mark.requirement("RB-9")
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o444])
def test_a_database_that_its_owner_may_not_write_is_written(tmp_path: Path, mode: int) -> None:
    _make(tmp_path / "live", "delete", 1)
    _make(tmp_path / "wanted", "wal", 2)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    (tmp_path / "live/app.db").chmod(mode)
    written = write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert written.how is Writing.EXACT
    assert _files(tmp_path / "live") == _files(tmp_path / "wanted")
    assert stat.S_IMODE((tmp_path / "live/app.db").stat().st_mode) == job.mode


_HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
db.execute(sys.argv[2]).fetchall()
print("done", flush=True)
for statement in sys.stdin:
    db.execute(statement).fetchall()
    print("done", flush=True)
"""


@contextmanager
def _holding(path: Path, statement: str) -> Iterator[subprocess.Popen[str]]:
    """A program that has run a statement, keeps the database open and runs the given statements."""
    command = [sys.executable, "-c", _HOLDER, str(path), statement]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        yield process
        process.communicate()


def test_a_file_that_takes_its_place_while_it_is_opened_is_never_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite opens by path; what it has reached is compared with what the directory has."""
    for name, number in (("live", 1), ("wanted", 2), ("victim", 3)):
        _make(tmp_path / name, "delete", number)
    (tmp_path / "area").mkdir()
    job = job_for(tmp_path / "wanted", tmp_path / "live")
    path, victim, hidden = tmp_path / "live/app.db", tmp_path / "victim/app.db", tmp_path / "hidden"
    before = _files(tmp_path / "victim"), _files(tmp_path / "live")

    def swapped(name: str, **options: Any) -> apsw.Connection:
        if name != str(path):
            return connect(name, **options)
        path.rename(hidden)
        victim.rename(path)
        opened = connect(name, **options)
        path.rename(victim)
        hidden.rename(path)
        return opened

    connect = apsw.Connection
    monkeypatch.setattr(apsw, "Connection", swapped)
    with pytest.raises((OSError, apsw.ReadOnlyError)):  # SQLite notices it where it can
        write(tmp_path / "live", tmp_path / "wanted", tmp_path / "area", job)
    assert (_files(tmp_path / "victim"), _files(tmp_path / "live")) == before


class TestLiveDatabases(LiveDatabasesContract):
    def databases(self) -> LiveDatabases:
        return LocalFilesystem()
