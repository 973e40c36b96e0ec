"""A restore of a database that dies leaves it in one of two states, and the next command finishes.

Every call of the file system port is a moment of death, writing the database being one of them;
deaths after a time hit the process that writes it, too. Before anything is repaired, a program that
opens the database finds the old state or the new one.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.composition import composed
from tests.support.crash_server import CrashServer, Request
from tests.support.database_writer import make_database, state_of
from tests.support.tree_hash import Node, debris, describe, differences

pytestmark = [pytest.mark.requirement("DB-1", "RB-3")]

OLD, NEW = 1, 2
MODES = ["wal", "delete"]
STRIDE = 4
"""Every call took minutes; where the database is written all of them are tried one by one."""


@pytest.fixture(scope="module")
def server() -> Iterator[CrashServer]:
    with CrashServer() as server:
        yield server


class _Place:
    """A workspace with a database and a note, which show each other's state."""

    def __init__(self, root: Path, mode: str) -> None:
        self._root = root
        self.workspace = root / "project"
        self.workspace.mkdir()
        self.database = self.workspace / "app.db"
        make_database(self.database, mode, OLD)
        with composed(self.workspace) as opened:
            self.trees = {OLD: self._written(OLD)}
            self.old = opened.save("old").id
            self.trees[NEW] = self._written(NEW)
            self.new = opened.save("new").id

    def _written(self, number: int) -> dict[bytes, Node]:
        (self.workspace / "note").write_text(str(number))
        with closing(sqlite3.connect(self.database, isolation_level=None)) as db:
            db.execute("UPDATE rows SET number=?", (number,))
        if number == NEW:  # as a program leaves it that was killed: with its log
            self._leave_a_log()
        return describe(self.workspace)

    def _leave_a_log(self) -> None:
        with closing(sqlite3.connect(self.database, isolation_level=None)) as db:
            db.execute("PRAGMA wal_autocheckpoint=0")
            db.execute("UPDATE rows SET filling = filling || 'z'")
            kept = self._root / "kept"
            shutil.copytree(self.workspace, kept, ignore=shutil.ignore_patterns("*-shm"))
        for path in self.workspace.glob("app.db*"):
            path.unlink()
        for path in kept.glob("app.db*"):
            shutil.copy2(path, self.workspace)
        shutil.rmtree(kept)

    def state(self) -> int:
        """Looked at in a copy: a look moves the log into the database."""
        copy = self._root / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for path in self.workspace.glob("app.db*"):
            if not path.name.endswith("-shm"):
                shutil.copy2(path, copy)
        return state_of(copy / "app.db")

    def go_to(self, reference: str) -> None:
        with composed(self.workspace) as opened:
            opened.restore(reference)

    def recover(self) -> dict[bytes, Node]:
        with composed(self.workspace) as opened:
            opened.engine.recover()
        assert debris(self.workspace) == []
        return describe(self.workspace)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("back", [True, False])
def test_a_restore_of_a_database_killed_at_any_call_is_finished_or_rolled_back(
    server: CrashServer, tmp_path: Path, mode: str, *, back: bool
) -> None:
    place = _Place(tmp_path, mode)
    goal, start = (place.old, place.new) if back else (place.new, place.old)
    place.go_to(start)
    calls = server.ask(Request(str(place.workspace), "restore", goal)).calls
    found = set()
    for at in range(1 + MODES.index(mode), calls + 1, STRIDE):
        place.go_to(start)
        server.ask(Request(str(place.workspace), "restore", goal, at=at))
        found.add(place.state())
        tree = place.recover()
        assert tree in place.trees.values(), (at, differences(tree, place.trees[OLD]))
        assert place.state() == int((place.workspace / "note").read_text())
    assert found == {OLD, NEW}


def test_a_restore_of_a_database_killed_at_some_time_is_finished_or_rolled_back_and_undone(
    server: CrashServer, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    place = _Place(tmp_path, "wal")
    for _ in range(12):
        place.go_to(place.new)
        server.ask(
            Request(str(place.workspace), "restore", place.old, after_s=chance.uniform(0.02, 0.4))
        )
        assert place.state() in (OLD, NEW)
        tree = place.recover()
        assert tree in place.trees.values(), differences(tree, place.trees[OLD])
        if tree == place.trees[OLD]:
            with composed(place.workspace) as opened:
                opened.undo()
            assert describe(place.workspace) == place.trees[NEW]


@pytest.mark.requirement("RB-2", "RB-4")
def test_work_on_the_database_after_the_crash_is_kept_for_undo(
    server: CrashServer, tmp_path: Path
) -> None:
    place = _Place(tmp_path, "wal")
    calls = server.ask(Request(str(place.workspace), "restore", place.old)).calls
    for at in range(calls // 2, calls):  # how many it takes depends on what was done before
        _kill(server, place, at)
        if place.state() == OLD and (place.workspace / "note").read_text() == str(NEW):
            break  # the database is written, and nothing else yet
        place.recover()
    else:
        pytest.fail("no death hit the moment after the database was written")
    with closing(sqlite3.connect(place.database, isolation_level=None)) as db:
        db.execute("UPDATE rows SET number=5")
    assert place.recover() == place.trees[OLD]
    with composed(place.workspace) as opened:
        opened.undo()
    assert place.state() == 5


def _kill(server: CrashServer, place: _Place, at: int) -> None:
    place.go_to(place.new)
    server.ask(Request(str(place.workspace), "restore", place.old, at=at))
