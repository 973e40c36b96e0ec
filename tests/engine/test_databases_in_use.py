"""Programs that use a SQLite database while it is restored see one of its two states (DB-1)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreConflict, RestoreFailed
from tests.support.database_crowd import crowd_around
from tests.support.database_writer import make_database, state_of

pytestmark = pytest.mark.requirement("DB-1")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


@pytest.mark.requirement("RB-6")
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_programs_that_reopen_it_without_a_pause_never_find_a_mixture(
    workspace: Path, mode: str
) -> None:
    path = workspace / "app.db"
    make_database(path, mode, 1)
    with SessionCheckpointer(workspace, "s") as session:
        one = session.checkpoint("one")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE rows SET number=2")
            two = session.checkpoint("two")
        with crowd_around(path, writers=2, readers=1) as crowd:
            for goal in (one, two, one, two):
                _restore_between_transactions(session, goal)
                assert crowd.complaints() == []
        state_of(path)
        session.restore(one)
        assert state_of(path) == 1


def _restore_between_transactions(session: SessionCheckpointer, goal: str) -> None:
    """With a journal a restore is refused while a program is in the middle of a transaction."""
    for _ in range(300):
        try:
            session.restore(goal)
        except (RestoreConflict, RestoreFailed) as refused:
            if "transaction of this database is open" not in refused.message:
                raise
        else:
            return
    raise AssertionError("it was never restored")


@pytest.mark.parametrize("reading", [True, False])
def test_a_reader_that_has_it_open_sees_the_old_state_to_its_end_and_then_the_new_one(
    workspace: Path, *, reading: bool
) -> None:
    path = workspace / "app.db"
    make_database(path, "wal", 1)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("UPDATE rows SET number=2")
            if reading:
                reader.execute("BEGIN")
                assert reader.execute("SELECT DISTINCT number FROM rows").fetchall() == [(2,)]
            outcome = session.restore_checkpoint(first)
            assert any("open in another program" in warning for warning in outcome.warnings)
            assert [step.path for step in outcome.steps] == [b"app.db"]
            assert (workspace / "app.db-wal").exists()
            if reading:
                assert reader.execute("SELECT DISTINCT number FROM rows").fetchall() == [(2,)]
                reader.execute("COMMIT")
            assert reader.execute("SELECT DISTINCT number FROM rows").fetchall() == [(1,)]
            reader.execute("UPDATE rows SET number=4")
        assert state_of(path) == 4
        session.restore(first)
        assert state_of(path) == 1
