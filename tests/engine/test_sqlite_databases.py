"""SQLite databases are captured and brought back as one state, also while others write (DB-1)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.errors import RestoreConflict, RestoreFailed
from holdfast.domain.sqlite_files import DatabaseJob, Written
from holdfast.testing.intercepted_filesystem import Disk, InterceptedFilesystem
from tests.behind_the_api import engine_of
from tests.support.composition import configure
from tests.support.database_writer import OBEDIENT, hammering, make_database, state_of, tell
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe, differences

pytestmark = pytest.mark.requirement("DB-1")

MODES = ["wal", "delete", "truncate", "persist"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


def _materialised(session: SessionCheckpointer, checkpoint: str, place: Path) -> Path:
    """The database of a checkpoint, written somewhere else with everything that belongs to it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for artifact in get_snapshot(session, checkpoint).artifacts:
        if artifact.path.startswith("app.db") and not artifact.path.endswith("-shm"):
            (place / artifact.path).write_bytes(artifact.read_bytes())
    return place / "app.db"


@pytest.mark.parametrize("mode", MODES)
def test_a_database_that_is_written_all_the_time_is_captured_as_a_state_it_had(
    workspace: Path, tmp_path: Path, mode: str
) -> None:
    make_database(workspace / "app.db", mode)
    states = []
    with (
        SessionCheckpointer(workspace, "s") as session,
        # Without a pause, the log can grow as fast as it is read.
        hammering(workspace / "app.db", mode, pause_s=0.001),
    ):
        for number in range(12):
            outcome = session.save_checkpoint(f"while writing {number}")
            assert outcome.failures == (), [skip.describe() for skip in outcome.failures]
            copy = _materialised(session, outcome.checkpoint.id, tmp_path / "copy")
            states.append(state_of(copy))
    assert states == sorted(states)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_checkpoint_brings_the_database_back_with_its_log(workspace: Path, mode: str) -> None:
    path = workspace / "app.db"
    make_database(path, mode)
    with SessionCheckpointer(workspace, "s") as session:
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE rows SET number=2")
            db.commit()
            assert (workspace / "app.db-wal").exists() == (mode == "wal")
            before = session.checkpoint("number 2, in the log")
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE rows SET number=3")
            db.commit()
        session.restore(before)
        assert state_of(path) == 2
        session.undo()
        assert state_of(path) == 3


def test_readers_see_the_old_state_or_the_new_one_and_never_a_mixture(workspace: Path) -> None:
    """A program opens the database again and again while it goes back and forth."""
    path = workspace / "app.db"
    make_database(path, "wal", 1)
    seen: set[int] = set()
    wrong: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                seen.add(_look_without_waiting(path))
            except sqlite3.OperationalError:
                continue  # the moment in which it is not there
            except BaseException as error:
                wrong.append(error)
                return

    with SessionCheckpointer(workspace, "s") as session:
        one = session.checkpoint("one")
        holding = sqlite3.connect(path)
        with closing(holding):
            holding.execute("UPDATE rows SET number=2")
            holding.commit()
            two = session.checkpoint("two, in a log")
        reader = threading.Thread(target=look, daemon=True)
        reader.start()
        try:
            for _ in range(15):
                session.restore(one)
                session.restore(two)
        finally:
            done.set()
            reader.join()
    assert wrong == []
    assert seen == {1, 2}


def _look_without_waiting(path: Path) -> int:
    address = f"file:{path}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=0)) as db:
        numbers = db.execute("SELECT DISTINCT number FROM rows").fetchall()
        assert len(numbers) == 1, f"a mixture: {numbers}"
        return int(numbers[0][0])


@pytest.mark.parametrize("rule", ["*-wal\n*-shm\n*-journal\n", "app.db-wal\n"])
def test_rules_that_ignore_the_log_do_not_take_a_database_apart(workspace: Path, rule: str) -> None:
    path = workspace / "app.db"
    make_database(path, "wal", 1)
    (workspace / ".gitignore").write_text(rule)
    with SessionCheckpointer(workspace, "s") as session:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE rows SET number=2")
            saved = session.checkpoint("two, in an ignored log")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE rows SET number=3")
            session.restore(saved)
        assert state_of(path) == 2


def test_a_database_selected_alone_comes_with_its_log(workspace: Path) -> None:
    path = workspace / "app.db"
    make_database(path, "wal", 1)
    (workspace / "other").write_text("at first")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one, no log")
        (workspace / "other").write_text("changed")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE rows SET number=2")
            second = session.checkpoint("two, in a log")
            session.restore_checkpoint(first, paths=["app.db"])
        assert state_of(path) == 1
        session.restore_checkpoint(second, paths=["app.db"])
        assert state_of(path) == 2
        assert (workspace / "other").read_text() == "changed"


def test_files_that_are_only_named_like_a_database_are_just_files(workspace: Path) -> None:
    (workspace / "travel").write_text("to the sea")
    (workspace / "travel-journal").write_text("day one")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("both")
        (workspace / "travel").write_text("to the hills")
        (workspace / "travel-journal").write_text("day two")
        session.restore_checkpoint(first, paths=["travel"])
        assert (workspace / "travel-journal").read_text() == "day two"
        session.restore(first)
        assert (workspace / "travel-journal").read_text() == "day one"


def test_a_transaction_under_way_is_left_out_and_no_restore_tears_it_apart(workspace: Path) -> None:
    path = workspace / "app.db"
    make_database(path, "delete", 1)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE rows SET number=2")
            db.execute("PRAGMA cache_size=1")
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE rows SET number=3")
            outcome = session.save_checkpoint("in the middle")
            assert (workspace / "app.db-journal").exists()
            reasons = {skip.path: skip.reason for skip in outcome.skipped}
            assert reasons[b"app.db-journal"] is SkipReason.TRANSACTION
            with pytest.raises(RestoreConflict, match="transaction of this database is open"):
                session.restore(first)
            db.execute("COMMIT")
            assert db.execute("SELECT DISTINCT number FROM rows").fetchall() == [(3,)]
        session.restore(first)
        assert state_of(path) == 1


def test_what_a_crashed_writer_left_is_captured_and_rolled_back_by_sqlite(workspace: Path) -> None:
    path = workspace / "app.db"
    make_database(path, "delete", 1)
    dying = (
        "import os, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA cache_size=1')\n"
        "db.execute('BEGIN EXCLUSIVE')\n"
        "db.execute('UPDATE rows SET number=2')\n"
        "os._exit(0)\n"  # in the middle of a transaction that has reached the file
    )
    subprocess.run([sys.executable, "-c", dying, str(path)], check=True)
    assert (workspace / "app.db-journal").stat().st_size > 0
    for name in ("app.db", "app.db-journal"):
        os.utime(workspace / name, (1_600_000_000, 1_600_000_000))
    with SessionCheckpointer(workspace, "s") as session:
        left = session.checkpoint("as the crash left it")
        assert state_of(path) == 1
        session.restore(left)
        assert (workspace / "app.db-journal").stat().st_size > 0
        assert state_of(path) == 1


def test_what_can_no_longer_be_a_database_is_captured_as_it_is(workspace: Path) -> None:
    (workspace / "app.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    (workspace / "app.db-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\xee" * 5000)
    with SessionCheckpointer(workspace, "s") as session:
        saved = session.checkpoint("garbage")
        (workspace / "app.db").unlink()
        (workspace / "app.db-wal").write_bytes(b"other")
        session.restore(saved)
        assert (workspace / "app.db").read_bytes().endswith(b"\xff" * 5000)
        assert (workspace / "app.db-wal").read_bytes().endswith(b"\xee" * 5000)


def test_a_file_that_is_only_named_like_shared_memory_is_not_taken_for_it(workspace: Path) -> None:
    """A path that returns while the restore runs is reported, unless opening a database made it."""
    (workspace / "kept").write_text("kept")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("without notes")
        (workspace / "notes-shm").write_text("mine")
        vault = engine_of(session).vault
        fs = _ComingBack(LocalFilesystem(), workspace / "notes-shm")
        engine_of(session).vault = replace(vault, fs=fs, databases=fs)
        with pytest.raises(RestoreFailed, match="still there"):
            session.restore(first)
        assert (workspace / "notes-shm").exists()


class _ComingBack(InterceptedFilesystem):
    """A program writes the file again as soon as it was moved out."""

    def __init__(self, inner: Disk, path: Path) -> None:
        super().__init__(inner)
        self._path = path

    def rename(
        self,
        source: bytes,
        target: bytes,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        super().rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if source == os.fsencode(self._path.name):
            self._path.write_text("again")


class _Beginning(InterceptedFilesystem):
    """A program begins a transaction when the restore has planned, and is about to write."""

    def __init__(self, inner: Disk, writer: subprocess.Popen[str]) -> None:
        super().__init__(inner)
        self._writer = writer
        self._begun = False

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        if not self._begun:
            self._begun = True
            tell(self._writer, "begin")
        return super().overwrite_database(job, dir_fd=dir_fd, area_fd=area_fd)


@pytest.mark.requirement("RB-3")
@pytest.mark.parametrize("mode", MODES)
def test_a_transaction_that_begins_after_the_plan_is_not_torn_apart(
    workspace: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace / "app.db"
    make_database(path, mode, 1)
    monkeypatch.setattr("holdfast.engine.restore.database_groups.PATIENCE_S", 0.002)
    command = [sys.executable, "-c", OBEDIENT, str(path)]
    with (
        SessionCheckpointer(workspace, "s") as session,
        subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as writer,
    ):
        first = session.checkpoint("one")
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE rows SET number=2")
            db.commit()
        vault = engine_of(session).vault
        fs = _Beginning(LocalFilesystem(), writer)
        engine_of(session).vault = replace(vault, fs=fs, databases=fs)
        with pytest.raises(RestoreFailed, match="transaction of this database is open"):
            session.restore(first)
        tell(writer, "commit")
        assert state_of(path) == 7
        session.restore(first)
        assert state_of(path) == 1
        writer.communicate()


def test_files_that_are_no_database_are_never_waited_for(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.local.live_database._locked", lambda _: False)
    (workspace / "page").write_bytes(b"x" * 4096)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        (workspace / "page").write_bytes(b"y" * 4096)
        session.restore(first)
        assert (workspace / "page").read_bytes() == b"x" * 4096
        (workspace / "page").write_bytes(b"")
        session.restore(first)
        assert (workspace / "page").read_bytes() == b"x" * 4096


def test_a_log_brings_its_database_with_it_where_rules_leave_that_out(
    workspace: Path, tmp_path: Path
) -> None:
    """A log beside another state of its database, or beside none, is worth nothing."""
    live = tmp_path / "app.db"
    make_database(live, "wal")
    with closing(sqlite3.connect(live)) as db:
        db.execute("UPDATE rows SET number=2")
        db.commit()
        for name in ("app.db", "app.db-wal"):  # as a program leaves them that was killed
            shutil.copy(tmp_path / name, workspace / name)
    (workspace / ".gitignore").write_text("*.db\n")
    threading.Event().wait(0.05)  # nothing of it is of the same clock tick now
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("number 2, in the log")
        os.utime(workspace / "app.db")
        second = session.checkpoint("the database was touched")
        for saved in (first, second):
            names = {artifact.path for artifact in get_snapshot(session, saved).artifacts}
            assert {"app.db", "app.db-wal"} <= names


def test_a_log_above_the_size_cap_stays_with_its_database(workspace: Path, tmp_path: Path) -> None:
    live = tmp_path / "app.db"
    make_database(live, "wal")
    with closing(sqlite3.connect(live)) as db:
        db.execute("UPDATE rows SET number=2")
        db.commit()
        for name in ("app.db", "app.db-wal"):  # as a program leaves them that was killed
            shutil.copy(tmp_path / name, workspace / name)
    with open(workspace / "app.db-wal", "ab") as log:
        log.write(bytes(1 << 17))  # as the rest of an earlier, longer log
    threading.Event().wait(0.05)  # nothing of it is of the same clock tick now
    configure(workspace, max_file_size=1 << 17)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("number 2, in the log")
        (workspace / "other").touch()
        second = session.checkpoint("beside it, something changed")
        for saved in (first, second):
            names = {artifact.path for artifact in get_snapshot(session, saved).artifacts}
            assert {"app.db", "app.db-wal"} <= names


@pytest.mark.requirement("CP-11", "RB-14")
@pytest.mark.parametrize("other", ["again.db", "first.db"])
def test_a_database_with_two_names_is_still_one_file_after_its_log_was_restored(
    workspace: Path, tmp_path: Path, other: str
) -> None:
    """Only the log differs, and the database is replaced with it."""
    live = tmp_path / "live" / "app.db"
    live.parent.mkdir()
    make_database(live, "wal")
    (workspace / "app.db").write_bytes(live.read_bytes())
    (workspace / other).hardlink_to(workspace / "app.db")
    log = workspace / "app.db-wal"
    with (
        closing(sqlite3.connect(live, isolation_level=None)) as db,
        closing(SessionCheckpointer(workspace, "s")) as session,
    ):
        db.execute("UPDATE rows SET number=2")
        shutil.copy(f"{live}-wal", log)
        wanted = session.checkpoint("number 2, in the log")
        before = describe(workspace)
        db.execute("UPDATE rows SET number=3")
        shutil.copy(f"{live}-wal", log)
        shutil.copy(f"{live}-shm", workspace / "app.db-shm")  # a program may have it open
        changed = describe(workspace)

        session.restore(wanted)
        assert differences(describe(workspace), before) == []
        assert session.plan_restore(wanted).steps == ()
        session.undo()
        del changed[b"app.db-shm"]
        assert differences(describe(workspace), changed) == []
