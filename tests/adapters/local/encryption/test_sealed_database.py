"""SQLite on sealed files: the same answers, nothing to read, no damage that goes unnoticed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.local.encryption.cipher import OVERHEAD_BYTES
from holdfast.adapters.local.encryption.sealed_database import PAGE_BYTES
from holdfast.adapters.local.sqlite_connection import connect, fold_log
from holdfast.domain.errors import StoreDamaged
from tests.adapters.local.encryption.sealed_databases import (
    FRAME_BYTES,
    SECRET,
    add,
    flip,
    forget_memory,
    make,
    open_sealed,
    rows_of,
)

pytestmark = pytest.mark.requirement("ST-6")


def test_nothing_of_the_content_or_the_schema_is_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    make(path)
    db = open_sealed(path)
    add(db, range(300, 400))
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["file.db", "file.db-shm", "file.db-wal"]
    for file in tmp_path.iterdir():
        raw = file.read_bytes()
        assert not any(word in raw for word in (SECRET.encode(), b"CREATE", b"SQLite format"))
    db.close()
    assert rows_of(path) == list(range(400))


def test_everything_is_where_sqlite_expects_it(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    make(path)
    db = open_sealed(path)
    found: list[Any] = db.execute("PRAGMA page_count").fetchall()
    pages = found[0][0]
    assert path.stat().st_size == pages * PAGE_BYTES
    assert db.reserve_bytes("main", -1) == OVERHEAD_BYTES
    assert db.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert db.execute("PRAGMA mmap_size").fetchall() in ([], [(0,)])
    add(db, range(300, 301))
    assert (path.with_name("file.db-wal").stat().st_size - 32) % FRAME_BYTES == 0
    db.close()


def test_work_that_needs_much_room_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    make(path, rows=5000)
    db = open_sealed(path)
    db.execute("PRAGMA cache_size=10").fetchall()
    seen: set[str] = set()

    def look() -> bool:
        seen.update(file.name for file in tmp_path.iterdir())
        return False

    db.set_progress_handler(look, 500)
    db.execute("SELECT text FROM t ORDER BY text || n DESC, n").fetchall()
    db.execute("CREATE TEMP TABLE u AS SELECT text || text AS x FROM t; CREATE INDEX i ON t(text)")
    db.execute("UPDATE t SET text = text || 'x' WHERE n % 2")  # a statement of its own to undo
    with pytest.raises(apsw.ConstraintError):  # half-way: its work is rolled back
        db.execute("UPDATE t SET n = CASE WHEN n = 4999 THEN 10000 ELSE n + 10000 END")
    db.execute("UPDATE t SET text = substr(text, 1, length(text) - 1) WHERE n % 2")
    db.execute("VACUUM")
    db.set_progress_handler(None)
    db.close()
    assert {name for name in seen if not name.startswith("file.db")} == set()
    assert "file.db-journal" not in seen
    assert rows_of(path) == list(range(5000))


def test_files_that_would_not_be_sealed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    make(path)
    db = open_sealed(path)
    with pytest.raises((apsw.CantOpenError, apsw.Error)):
        db.execute("PRAGMA journal_mode=DELETE; DELETE FROM t")
    db.close()
    assert not path.with_name("file.db-journal").exists()
    assert rows_of(path) == list(range(300))
    path.write_bytes(b"")  # SQLite would take this for a new database
    for file in tmp_path.glob("*.db-*"):
        file.unlink()
    with pytest.raises(apsw.Error):
        open_sealed(path).execute("CREATE TABLE t(x)")


def test_with_another_key_it_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    make(path)
    for file in tmp_path.glob("*.db-*"):
        file.unlink()
    before = path.read_bytes()
    with pytest.raises(apsw.Error):
        open_sealed(path, "index").execute("SELECT * FROM t").fetchall()
    assert path.read_bytes() == before


def test_damage_to_any_page_is_an_error_and_never_other_content(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "file.db"
    make(path)
    sound = path.read_bytes()
    pages = len(sound) // PAGE_BYTES
    assert pages >= 5
    for page in range(pages):
        for within in (0, 99, 100, PAGE_BYTES - 1, rng.randrange(PAGE_BYTES)):
            path.write_bytes(flip(sound, page * PAGE_BYTES + within))
            with pytest.raises((apsw.CorruptError, apsw.NotADBError)):
                rows_of(path)
        zeros = bytes(PAGE_BYTES)
        path.write_bytes(sound[: page * PAGE_BYTES] + zeros + sound[(page + 1) * PAGE_BYTES :])
        with pytest.raises((apsw.CorruptError, apsw.NotADBError)):
            rows_of(path)
    path.write_bytes(sound)
    assert rows_of(path) == list(range(300))


def test_a_page_cannot_replace_another_or_come_from_elsewhere(tmp_path: Path) -> None:
    path, other = tmp_path / "file.db", tmp_path / "other.db"
    make(path)
    db = open_sealed(other, "index")
    db.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT)")
    add(db, range(300))
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()
    sound, foreign = path.read_bytes(), other.read_bytes()
    pages = [sound[at : at + PAGE_BYTES] for at in range(0, len(sound), PAGE_BYTES)]
    for one, two in ((2, 3), (1, 4)):
        swapped = list(pages)
        swapped[one], swapped[two] = pages[two], pages[one]
        path.write_bytes(b"".join(swapped))
        with pytest.raises(apsw.CorruptError):
            rows_of(path)
    for page in range(len(pages)):
        start = page * PAGE_BYTES
        theirs = foreign[start : start + PAGE_BYTES]
        path.write_bytes(sound[:start] + theirs + sound[start + PAGE_BYTES :])
        with pytest.raises((apsw.CorruptError, apsw.NotADBError)):
            rows_of(path)


def test_processes_make_one_database_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    one, two = open_sealed(path), open_sealed(path)
    one.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT)")
    add(one, range(5))
    add(two, range(5, 10))
    fold_log(one, path)
    one.close()
    two.close()
    assert rows_of(path) == list(range(10))
    assert not list(tmp_path.glob(".file.db*"))


def test_what_a_killed_process_left_of_a_new_database_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / ".file.db.0011223344556677.new").write_bytes(b"half")
    make(tmp_path / "file.db")
    assert not list(tmp_path.glob(".file.db*"))
    assert rows_of(tmp_path / "file.db") == list(range(300))


def test_a_link_in_the_place_of_a_database_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreDamaged, match=r"file\.db"):
        open_sealed(tmp_path / "file.db")
    assert not (tmp_path / "elsewhere").exists()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, 60), st.integers(0, 9000)),
        st.tuples(st.just("delete"), st.integers(0, 60), st.integers(0, 60)),
        st.tuples(st.just("rollback"), st.integers(0, 60), st.integers(0, 9000)),
        st.tuples(st.just("fold"), st.just(0), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
        st.tuples(st.just("vacuum"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@given(STEPS)
def test_any_work_has_the_result_that_it_has_on_a_plain_file(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    place = tmp_path_factory.mktemp("work")
    results = []
    for path, opening in (
        (place / "sealed.db", open_sealed),
        (place / "plain.db", lambda path: connect(path, synchronous="FULL")),
    ):
        results.append(_work(path, opening, steps))
    assert results[0] == results[1]
    shutil.rmtree(place)


def _work(
    path: Path, opening: Callable[[Path], apsw.Connection], steps: list[tuple[str, int, int]]
) -> list[tuple[object, ...]]:
    db = opening(path)
    db.execute("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, text TEXT)")
    db.execute("PRAGMA cache_size=4").fetchall()
    for kind, number, size in steps:
        if kind == "insert":
            db.execute("REPLACE INTO t VALUES (?,?)", (number, str(size) * (size // 4 + 1)))
        elif kind == "delete":
            db.execute("DELETE FROM t WHERE n BETWEEN ? AND ?", (number, size))
        elif kind == "rollback":
            db.execute("BEGIN")
            db.execute("REPLACE INTO t VALUES (?,?)", (number, "x" * size))
            db.execute("UPDATE t SET text = text || 'y'")
            db.execute("ROLLBACK")
        elif kind == "fold":
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        elif kind == "vacuum":
            db.execute("VACUUM")
        else:
            db.close()
            if kind == "restart":
                forget_memory(path)
            db = opening(path)
            db.execute("PRAGMA cache_size=4").fetchall()
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows: list[tuple[object, ...]] = db.execute("SELECT n, text FROM t ORDER BY n").fetchall()
    db.close()
    return rows
