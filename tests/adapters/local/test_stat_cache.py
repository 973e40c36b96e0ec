"""The stat cache: a hint that may be lost at any time and must never be wrong."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.encryption.cipher import Cipher
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.adapters.local.stat_cache import SqliteStatCache
from holdfast.domain.errors import Busy
from holdfast.testing.faulty_filesystem import SqliteFaults
from holdfast.testing.samples import incompressible
from holdfast.testing.system_contracts import ENTRIES, StatCacheContract


class TestSqliteStatCache(StatCacheContract):
    def open_cache(self, directory: Path) -> SqliteStatCache:
        return SqliteStatCache(directory / "stat-cache.db")


class TestSealedStatCache(StatCacheContract):
    def open_cache(self, directory: Path) -> SqliteStatCache:
        return SqliteStatCache(directory / "stat-cache.db", Cipher(bytes(32)))


def test_entries_are_kept_between_processes(tmp_path: Path) -> None:
    path = tmp_path / "stat-cache.db"
    first = SqliteStatCache(path)
    assert first.load("1") == {}
    first.update("1", ENTRIES.items())
    first.close()
    second = SqliteStatCache(path)
    assert second.load("1") == ENTRIES
    second.close()


@pytest.mark.requirement("RL-5")
def test_any_flipped_byte_loses_entries_but_never_changes_one(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "stat-cache.db"
    cache = SqliteStatCache(path)
    cache.update("1", ENTRIES.items())
    cache.close()
    connection = connect(path, synchronous="OFF")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    whole = path.read_bytes()
    positions = rng.sample([position for position, byte in enumerate(whole) if byte], 250)
    positions += rng.sample(range(len(whole)), 50)
    for position in positions:
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        damaged = bytearray(whole)
        damaged[position] ^= rng.randrange(1, 256)
        path.write_bytes(damaged)
        cache = SqliteStatCache(path)
        loaded = cache.load("1")
        assert loaded.items() <= ENTRIES.items(), f"byte {position}"
        cache.update("1", [(b"later", b"entry")])
        assert cache.load("1").items() <= {**ENTRIES, b"later": b"entry"}.items()
        cache.close()


@pytest.mark.parametrize("garbage", [b"not a database", b"SQLite format 3\0" + b"\0" * 5000, b""])
def test_a_file_that_is_no_cache_is_recreated(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "stat-cache.db"
    path.write_bytes(garbage)
    cache = SqliteStatCache(path)
    assert cache.load("1") == {}
    cache.update("1", ENTRIES.items())
    assert cache.load("1") == ENTRIES
    cache.close()


def test_a_cache_damaged_while_open_is_recreated(tmp_path: Path) -> None:
    path = tmp_path / "stat-cache.db"
    cache = SqliteStatCache(path)
    cache.update("1", ENTRIES.items())
    path.write_bytes(b"overwritten" * 1000)
    assert cache.load("1").items() <= ENTRIES.items()
    cache.update("1", ENTRIES.items())
    cache.update("1", ENTRIES.items())
    assert cache.load("1").items() <= ENTRIES.items()
    cache.close()


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_disk_that_takes_no_more_costs_entries_and_not_the_save(
    tmp_path: Path, error: type[apsw.Error]
) -> None:
    path = tmp_path / "stat-cache.db"
    cache = SqliteStatCache(path)
    cache.update("1", ENTRIES.items())
    cache.close()
    with SqliteFaults(1, error) as faults:
        cache = SqliteStatCache(path)
        cache.update("1", [(b"large", incompressible("large", 50_000))])
        cache.close()
    assert faults.injected
    cache = SqliteStatCache(path)
    assert cache.load("1") == ENTRIES
    cache.close()


def test_many_who_open_a_new_cache_at_once_all_use_the_same_file(tmp_path: Path) -> None:
    """None of them takes a file that another is just making for a damaged one."""
    for number in range(10):
        path = tmp_path / f"{number}.db"
        together = threading.Barrier(16)
        troubles: list[BaseException] = []
        files: set[int] = set()

        def open_it(
            path: Path = path,
            together: threading.Barrier = together,
            troubles: list[BaseException] = troubles,
            files: set[int] = files,
        ) -> None:
            together.wait()
            try:
                cache = SqliteStatCache(path)
                files.add(path.stat().st_ino)
                cache.close()
            except BaseException as error:
                troubles.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert troubles == []
        assert len(files) == 1


def test_a_cache_that_another_process_keeps_locked_is_not_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.local.sqlite_connection._BUSY_TIMEOUT_MS", 20)
    path = tmp_path / "stat-cache.db"
    first = SqliteStatCache(path)
    first.update("1", ENTRIES.items())
    first.close()
    owner = apsw.Connection(str(path))
    owner.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE").fetchall()
    with pytest.raises(Busy, match=r"stat-cache\.db"):
        SqliteStatCache(path)
    owner.close()
    second = SqliteStatCache(path)
    assert second.load("1") == ENTRIES
    second.close()
