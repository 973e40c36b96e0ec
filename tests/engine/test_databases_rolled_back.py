"""A restore's changes to a database are rolled back with the rest, and nothing is lost."""

from __future__ import annotations

import errno
import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.live_database import overwrite_in_process
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.errors import RestoreFailed
from holdfast.domain.sqlite_files import DatabaseJob, PerhapsWritten, Writing, Written
from holdfast.testing.intercepted_filesystem import Disk, InterceptedFilesystem
from tests.behind_the_api import engine_of
from tests.support.database_writer import make_database, state_of

pytestmark = [pytest.mark.requirement("DB-1", "RB-3")]


def _set(path: Path, number: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE rows SET number=?", (number,))


class _Place:
    """A workspace that goes back to `first`; `z` is a file that comes after the database."""

    def __init__(self, root: Path, mode: str) -> None:
        self.workspace = root / "project"
        self.workspace.mkdir()
        self.database = self.workspace / "app.db"
        make_database(self.database, mode, 1)
        (self.workspace / "z").write_text("one")

    def change(self) -> None:
        _set(self.database, 2)
        (self.workspace / "z").write_text("two")

    def files(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.workspace.iterdir() if p.is_file()}


@pytest.fixture(params=["wal", "delete"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> _Place:
    return _Place(tmp_path, request.param)


class _FailingAfterwards(InterceptedFilesystem):
    """Before the database is written another program may write to it; the next file fails."""

    def __init__(self, inner: Disk, database: Path, number: int | None = None) -> None:
        super().__init__(inner)
        self._database = database
        self._number = number
        self.jobs = 0

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        self.jobs += 1
        if self._number is not None:
            _set(self._database, self._number)
            self._number = None
        return super().overwrite_database(job, dir_fd=dir_fd, area_fd=area_fd)

    def exchange(self, one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if other == b"z":
            raise OSError(errno.EIO, "refused by a test")
        super().exchange(one, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)


def _failing(session: SessionCheckpointer, fs: _FailingAfterwards, goal: str) -> None:
    vault = engine_of(session).vault
    engine_of(session).vault = replace(vault, fs=fs, databases=fs)
    with pytest.raises(RestoreFailed, match="rolled back"):
        session.restore(goal)
    engine_of(session).vault = vault


def test_a_failure_after_the_database_was_written_puts_its_very_bytes_back(place: _Place) -> None:
    with SessionCheckpointer(place.workspace, "s") as session:
        first = session.checkpoint("one")
        place.change()
        before = place.files()
        fs = _FailingAfterwards(LocalFilesystem(), place.database)
        _failing(session, fs, first)
        assert fs.jobs == 2
        assert place.files() == before
        session.restore(first)
        assert state_of(place.database) == 1


@pytest.mark.requirement("RB-4", "RB-6")
def test_what_another_process_wrote_in_between_is_what_is_put_back(place: _Place) -> None:
    with SessionCheckpointer(place.workspace, "s") as session:
        first = session.checkpoint("one")
        place.change()
        _failing(session, _FailingAfterwards(LocalFilesystem(), place.database, 3), first)
        assert state_of(place.database) == 3
        assert (place.workspace / "z").read_text() == "two"


@pytest.mark.requirement("RB-2", "RB-6")
def test_what_another_process_wrote_in_between_is_reported_and_comes_back_with_undo(
    place: _Place,
) -> None:
    with SessionCheckpointer(place.workspace, "s") as session:
        first = session.checkpoint("one")
        _set(place.database, 2)
        vault = engine_of(session).vault
        fs = _FailingAfterwards(LocalFilesystem(), place.database, 3)
        engine_of(session).vault = replace(vault, fs=fs, databases=fs)
        outcome = session.restore_checkpoint(first)
        engine_of(session).vault = vault
        assert [problem.path for problem in outcome.conflicts] == [b"app.db"]
        assert state_of(place.database) == 1
        session.undo()
        assert state_of(place.database) == 3


class _DyingAfterwards(InterceptedFilesystem):
    """The process that has just written the database ends before it says so."""

    def __init__(self, inner: Disk, why: BaseException) -> None:
        super().__init__(inner)
        self._why = why
        self._died = False

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        written = super().overwrite_database(job, dir_fd=dir_fd, area_fd=area_fd)
        if not self._died:
            self._died = True
            raise self._why
        return written


def _died() -> PerhapsWritten:
    return PerhapsWritten(errno.EIO, "the process that writes the database has died")


@pytest.mark.requirement("RB-9")
@pytest.mark.parametrize("best_effort", [False, True])
def test_a_database_that_may_have_been_written_is_restored(
    place: _Place, best_effort: bool
) -> None:
    with SessionCheckpointer(place.workspace, "s") as session:
        first = session.checkpoint("one")
        place.change()
        before = place.files()
        vault = engine_of(session).vault
        fs = _DyingAfterwards(LocalFilesystem(), _died())
        engine_of(session).vault = replace(vault, fs=fs, databases=fs)
        if best_effort:
            outcome = session.restore_checkpoint(first, best_effort=True)
            assert [problem.path for problem in outcome.skipped] == [b"app.db"]
            before["z"] = b"one"
        else:
            with pytest.raises(RestoreFailed, match="rolled back"):
                session.restore(first)
        engine_of(session).vault = vault
        assert place.files() == before
        assert state_of(place.database) == 2


def test_a_restore_that_is_interrupted_while_a_database_is_written_puts_it_back(
    place: _Place,
) -> None:
    with SessionCheckpointer(place.workspace, "s") as session:
        first = session.checkpoint("one")
        place.change()
        before = place.files()
        vault = engine_of(session).vault
        fs = _DyingAfterwards(LocalFilesystem(), KeyboardInterrupt())
        engine_of(session).vault = replace(vault, fs=fs, databases=fs)
        with pytest.raises(KeyboardInterrupt):
            session.restore(first)
        engine_of(session).vault = vault
        assert place.files() == before
        assert state_of(place.database) == 2


@pytest.mark.requirement("RB-6")
def test_with_best_effort_a_locked_database_is_left_out_and_said(
    place: _Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.restore.database_groups.PATIENCE_S", 0.01)
    with SessionCheckpointer(place.workspace, "s") as session:
        first = session.checkpoint("one")
        place.change()
        with _locked(place.database):
            outcome = session.restore_checkpoint(first, best_effort=True)
        assert [problem.path for problem in outcome.skipped] == [b"app.db"]
        assert "has it locked" in outcome.skipped[0].reason
        assert (place.workspace / "z").read_text() == "one"
        assert state_of(place.database) == 2


_HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """By another process: locks of this one would go with the first handle that it closes."""
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        yield
        holder.communicate()


_STOPPED = {
    "before it begins": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n",
    "when it has written": """
import json, os, signal, sys
sys.path = json.loads(sys.argv[1])
from holdfast.adapters.local import database_overwrite, live_database
database_overwrite.make_exact = lambda *given: os.kill(os.getpid(), signal.SIGSTOP)
live_database.serve()
""",
}


class _Stopping(InterceptedFilesystem):
    """The process that writes the first database is stopped, and never continues."""

    def __init__(self, inner: Disk, program: str, patch: pytest.MonkeyPatch) -> None:
        super().__init__(inner)
        self._program = program
        self._patch = patch
        self._stopped = False

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        if self._stopped:
            return super().overwrite_database(job, dir_fd=dir_fd, area_fd=area_fd)
        self._stopped = True
        with self._patch.context() as patch:
            patch.setattr("holdfast.adapters.local.live_database._PROGRAM", self._program)
            patch.setattr("holdfast.adapters.local.live_database._LONGEST_SILENCE", 2)
            return super().overwrite_database(job, dir_fd=dir_fd, area_fd=area_fd)


@pytest.mark.parametrize("when", _STOPPED)
def test_a_stopped_process_is_ended_and_everything_put_back(
    place: _Place, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(place.workspace, "s") as session:
        first = session.checkpoint("one")
        place.change()
        vault = engine_of(session).vault
        fs = _Stopping(LocalFilesystem(), _STOPPED[when], monkeypatch)
        engine_of(session).vault = replace(vault, fs=fs, databases=fs)
        with pytest.raises(RestoreFailed, match="hung and was killed") as failed:
            session.restore(first)
        assert "rolled back" in failed.value.message
        assert state_of(place.database) == 2
        assert (place.workspace / "z").read_text() == "two"
        session.restore(first)
        assert state_of(place.database) == 1


def test_what_a_process_says_to_show_that_it_lives_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [b" ", b"  ", pickle.dumps(Written(Writing.EXACT)), b" "]
    program = f"import os\nfor said in {said}: os.write(1, said)\n"
    monkeypatch.setattr("holdfast.adapters.local.live_database._PROGRAM", program)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        job = DatabaseJob(b"app.db", slots={}, wanted={})
        assert overwrite_in_process(job, fd, fd) == Written(Writing.EXACT)
    finally:
        os.close(fd)
