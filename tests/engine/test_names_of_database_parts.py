"""Things with the name of a database's log, journal or shared memory that are none of it, or that
are left of a database that was emptied: a restore of the database loses none of them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.composition import composed
from tests.support.database_writer import make_database
from tests.support.ruled_trees import database_files
from tests.support.tree_hash import describe, differences

pytestmark = pytest.mark.requirement("DB-1")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


@pytest.mark.requirement("RB-2", "RB-4")
@pytest.mark.parametrize("part", [b"-wal", b"-journal"])
def test_a_database_that_was_emptied_beside_its_log_comes_back_and_undo_empties_it_again(
    workspace: Path, part: bytes
) -> None:
    """As `> app.db` in a shell does: its log, or the journal of a crash, is still there."""
    found = next(files for files in database_files() if part in files)
    for suffix in (b"", part):
        (workspace / f"app.db{suffix.decode()}").write_bytes(found[suffix])
    with composed(workspace) as opened:
        whole = describe(workspace)
        saved = opened.save()
        (workspace / "app.db").write_bytes(b"")
        emptied = describe(workspace)
        assert opened.restore(saved.id).conflicts == ()
        assert differences(describe(workspace), whole) == []
        opened.undo()
        assert differences(describe(workspace), emptied) == []


def _put_text(place: Path) -> None:
    place.write_text("of the user, and of no database")


def _put_link(place: Path) -> None:
    place.symlink_to("kept")


def _put_directory(place: Path) -> None:
    place.mkdir()
    (place / "inside").write_text("kept as well")


def _put_pipe(place: Path) -> None:
    os.mkfifo(place)


@pytest.mark.requirement("RB-4", "RB-2")
@pytest.mark.parametrize("ignored", [False, True], ids=["captured", "ignored"])
@pytest.mark.parametrize("then", ["nothing", "empty", "another"])
@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
@pytest.mark.parametrize("put", [_put_text, _put_link, _put_directory, _put_pipe])
def test_what_has_the_name_of_a_part_of_a_database_by_chance_is_never_lost(
    workspace: Path, put: Callable[[Path], None], suffix: str, then: str, ignored: bool
) -> None:
    """The database goes back, and forth again, beside something that is no part of it."""
    (workspace / "kept").write_text("kept")
    (workspace / ".gitignore").write_text("app.db-*\n" if ignored else "")
    if then != "nothing":
        (workspace / "app.db").touch()
    if then == "another":
        make_database(workspace / "app.db", "delete")
    with composed(workspace) as opened:
        first = opened.save()
        (workspace / "app.db").unlink(missing_ok=True)
        make_database(workspace / "app.db", "delete")
        with closing(sqlite3.connect(workspace / "app.db")) as connection:
            connection.execute("create table later (x)")
        put(workspace / f"app.db{suffix}")
        before = describe(workspace)
        opened.restore(first.id)
        between = describe(workspace)
        opened.undo()
        assert differences(describe(workspace), before) == []
        if put is _put_pipe or (ignored and put is not _put_text):
            beside = [path for path in before if path.startswith(b"app.db-")]
            assert {p: between.get(p) for p in beside} == {p: before[p] for p in beside}


@pytest.mark.requirement("RB-1")
@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_database_beside_a_directory_with_the_name_of_a_part_of_it_is_restored(
    workspace: Path, suffix: str
) -> None:
    make_database(workspace / "app.db", "delete")
    _put_directory(workspace / f"app.db{suffix}")
    with composed(workspace) as opened:
        before = describe(workspace)
        saved = opened.save()
        with closing(sqlite3.connect(":memory:")) as other:
            other.execute("create table later (x)")
            (workspace / "app.db").write_bytes(other.serialize())
        (workspace / f"app.db{suffix}" / "inside").write_text("changed")
        opened.restore(saved.id)
        assert differences(describe(workspace), before) == []


@pytest.mark.requirement("RB-1", "RB-2")
@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_part_of_a_database_that_becomes_a_directory_and_back_is_restored(
    workspace: Path, suffix: str
) -> None:
    make_database(workspace / "app.db", "delete")
    beside = workspace / f"app.db{suffix}"
    _put_text(beside)
    with composed(workspace) as opened:
        file = describe(workspace)
        first = opened.save()
        beside.unlink()
        _put_directory(beside)
        with closing(sqlite3.connect(":memory:")) as other:
            other.execute("create table later (x)")
            (workspace / "app.db").write_bytes(other.serialize())
        directory = describe(workspace)
        second = opened.save()
        for target, expected in ((first, file), (second, directory), (first, file)):
            opened.restore(target.id)
            assert differences(describe(workspace), expected) == []
        opened.undo()
        assert differences(describe(workspace), directory) == []


@pytest.mark.requirement("RB-2", "RB-4")
@pytest.mark.parametrize("place", ["inside", "outside"])
@pytest.mark.parametrize("part", ["-wal", "-journal"])
def test_a_part_of_a_database_with_a_second_name_is_not_emptied(
    workspace: Path, tmp_path: Path, part: str, place: str
) -> None:
    """SQLite empties the log and the journal of a database that it writes."""
    found = next(files for files in database_files() if part.encode() in files)
    other = (workspace if place == "inside" else tmp_path) / "second-name"
    with composed(workspace) as opened:
        make_database(workspace / "app.db", "delete")
        saved = opened.save()
        for suffix in ("", part):
            (workspace / f"app.db{suffix}").write_bytes(found[suffix.encode()])
        os.link(workspace / f"app.db{part}", other)
        before = describe(workspace)
        opened.restore(saved.id)
        if place == "outside":
            assert other.read_bytes() == found[part.encode()]
        opened.undo()
        assert differences(describe(workspace), before) == []
    assert other.read_bytes() == found[part.encode()]


@pytest.mark.requirement("RB-5")
@pytest.mark.parametrize("journal", ["of a crash", "kept by its program"])
def test_a_database_with_bytes_after_its_last_page_comes_back_with_its_journal(
    workspace: Path, journal: str
) -> None:
    found = next(files for files in database_files() if b"-journal" in files)
    (workspace / "app.db").write_bytes(found[b""] + b"more")
    hot = found[b"-journal"]
    blank = bytes(28) + hot[28:]
    (workspace / "app.db-journal").write_bytes(hot if journal == "of a crash" else blank)
    with composed(workspace) as opened:
        before = describe(workspace)
        saved = opened.save()
        for name in ("app.db", "app.db-journal"):
            (workspace / name).unlink()
        opened.restore(saved.id)
        assert differences(describe(workspace), before) == []
