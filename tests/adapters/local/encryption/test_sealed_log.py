"""The sealed log: torn, cut or failing at any write, it gives a state that was committed."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.encryption.sealed_database import PAGE_BYTES
from holdfast.testing.faulty_filesystem import SqliteFaults
from tests.adapters.local.encryption.sealed_databases import (
    FRAME_BYTES,
    add,
    copy,
    flip,
    forget_memory,
    make,
    open_sealed,
    rows_of,
)

pytestmark = pytest.mark.requirement("ST-6")


def _commits(path: Path) -> list[int]:
    """Three transactions in the log; its size after each."""
    make(path)
    db = open_sealed(path)
    sizes = []
    for start in (300, 310, 320):
        add(db, range(start, start + 10))
        sizes.append(path.with_name(path.name + "-wal").stat().st_size)
    db.close()
    return sizes


def _expected(sound_bytes: int, sizes: list[int]) -> list[int]:
    return list(range(300 + 10 * sum(size <= sound_bytes for size in sizes)))


def test_a_log_cut_anywhere_gives_the_transactions_before_the_cut(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "file.db"
    sizes = _commits(path)
    log = path.with_name("file.db-wal").read_bytes()
    cuts = {0, 1, 31, 32, 33, *sizes, *(size - 1 for size in sizes)}
    cuts |= {32 + 24, 32 + FRAME_BYTES, *(rng.randrange(len(log)) for _ in range(20))}
    for number, cut in enumerate(sorted(cuts)):
        trial = copy(path, tmp_path / str(number))
        trial.with_name("file.db-wal").write_bytes(log[:cut])
        assert rows_of(trial) == _expected(cut, sizes), cut


def test_a_torn_frame_ends_the_log_and_the_next_save_goes_over_it(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "file.db"
    sizes = _commits(path)
    log = path.with_name("file.db-wal").read_bytes()
    for number in range(25):
        trial = copy(path, tmp_path / str(number))
        at = rng.randrange(32, len(log))
        trial.with_name("file.db-wal").write_bytes(flip(log, at))
        frame_start = 32 + (at - 32) // FRAME_BYTES * FRAME_BYTES
        expected = _expected(frame_start, sizes)
        assert rows_of(trial) == expected, at
        db = open_sealed(trial)
        add(db, range(1000, 1005))
        db.close()
        forget_memory(trial)
        assert rows_of(trial) == [*expected, *range(1000, 1005)]


def test_a_frame_that_is_damaged_while_the_log_is_in_use_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    _commits(path)
    log = path.with_name("file.db-wal")
    reader = open_sealed(path)
    assert reader.execute("SELECT count(*) FROM t").fetchall() == [(330,)]
    second = open_sealed(path)  # the index of the log is in memory: nothing is recovered
    log.write_bytes(flip(log.read_bytes(), log.stat().st_size - 100))
    with pytest.raises(apsw.CorruptError, match="frame"):
        second.execute("SELECT * FROM t").fetchall()
    second.close()
    reader.close()


@pytest.mark.parametrize("page", range(5))
def test_a_page_torn_while_the_log_was_folded_comes_from_the_log(tmp_path: Path, page: int) -> None:
    path = tmp_path / "file.db"
    make(path)
    before = path.read_bytes()
    db = open_sealed(path)
    with db:  # every page changes
        db.execute("UPDATE t SET text = text || ''")
        db.execute("PRAGMA user_version=7").fetchall()
    torn = copy(path, tmp_path / "torn")
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
    db.close()
    after = path.read_bytes()
    start = page * PAGE_BYTES
    for reached in (1, 50, 2048, 4095):
        cut = start + reached
        torn.write_bytes(after[:cut] + before[cut:])
        forget_memory(torn)
        assert rows_of(torn) == list(range(300))
    db = open_sealed(torn)
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()
    assert rows_of(torn) == list(range(300))


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
@pytest.mark.parametrize("lasting", [True, False])
def test_a_fault_at_any_write_leaves_the_state_before_or_after(
    tmp_path: Path, error: type[apsw.Error], lasting: bool
) -> None:
    def work(path: Path) -> None:
        db = open_sealed(path)
        try:
            add(db, range(300, 340))
            add(db, range(340, 350))
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            db.close()

    make(tmp_path / "file.db")
    with SqliteFaults(0) as counted:
        work(copy(tmp_path / "file.db", tmp_path / "count"))
    assert counted.changes > 8
    allowed = [list(range(end)) for end in (300, 340, 350)]
    for number in range(1, counted.changes + 1):
        path = copy(tmp_path / "file.db", tmp_path / str(number))
        with SqliteFaults(number, error, lasting=lasting) as faults, contextlib.suppress(error):
            work(path)
        assert faults.injected
        assert rows_of(path) in allowed, number
        forget_memory(path)
        assert rows_of(path) in allowed, number
