"""A restore waits for the end of a transaction that keeps a journal, but not for ever (DB-1)."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.errors import RestoreConflict
from holdfast.testing.intercepted_filesystem import Disk, InterceptedFilesystem
from tests.behind_the_api import engine_of
from tests.support.database_writer import OBEDIENT, make_database, state_of, tell

pytestmark = pytest.mark.requirement("DB-1")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


class _Ending(InterceptedFilesystem):
    """A program ends a transaction when the restore begins to wait for that."""

    def __init__(self, inner: Disk, writer: subprocess.Popen[str]) -> None:
        super().__init__(inner)
        self._writer = writer
        self.waited = 0

    def pause_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        self.waited += 1
        if self.waited == 2:
            tell(self._writer, "commit")
        return (
            super().pause_database(name, dir_fd=dir_fd) if self.waited > 1 else nullcontext(False)
        )


@contextmanager
def _in_a_transaction(
    path: Path, mode: str
) -> Iterator[tuple[SessionCheckpointer, str, subprocess.Popen[str]]]:
    """A database that was saved as 1 and is 2 by now, and a program that is making it 7."""
    make_database(path, mode, 1)
    command = [sys.executable, "-c", OBEDIENT, str(path)]
    with (
        SessionCheckpointer(path.parent, "s") as session,
        subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as writer,
    ):
        first = session.checkpoint("one")
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE rows SET number=2")
            db.commit()
        tell(writer, "begin")
        yield session, first, writer
        writer.communicate()


@pytest.mark.requirement("RB-3", "RB-6")
@pytest.mark.parametrize("mode", ["delete", "truncate", "persist"])
def test_a_restore_waits_for_a_transaction_and_keeps_what_it_has_written(
    workspace: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace / "app.db"
    if mode != "delete":  # there, each read waits as long as it does for users
        monkeypatch.setattr("holdfast.adapters.local.live_database._TRIES", 200)
    with _in_a_transaction(path, mode) as (session, first, writer):
        vault = engine_of(session).vault
        fs = _Ending(LocalFilesystem(), writer)
        engine_of(session).vault = replace(vault, fs=fs, databases=fs)
        session.restore(first)
        assert fs.waited >= 2
        assert state_of(path) == 1
        session.undo()
        assert state_of(path) == 7


@pytest.mark.requirement("RB-3")
def test_a_transaction_that_does_not_end_is_not_waited_for_without_end(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace / "app.db"
    monkeypatch.setattr("holdfast.adapters.local.live_database._PAUSE_TRIES", 2)
    monkeypatch.setattr("holdfast.adapters.local.live_database._TRIES", 200)
    with _in_a_transaction(path, "delete") as (session, first, writer):
        with pytest.raises(RestoreConflict, match=r"cannot restore .* now") as refused:
            session.restore(first)
        assert "stop the program that writes to it" in (refused.value.hint or "")
        tell(writer, "commit")
        assert state_of(path) == 7
