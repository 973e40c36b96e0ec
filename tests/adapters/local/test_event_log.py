"""The stream of events keeps its contract on disk, sealed and in memory, and survives its loss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.adapters.local.encryption.cipher import Cipher
from holdfast.adapters.local.event_log import (
    InotifyListener,
    PollingListener,
    SqliteEventLog,
    UnwritableEventLog,
)
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.local_store import LocalStore
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.ports.event_log import ChangeListener, EventCursors, EventsLost
from holdfast.ports.store import OpenStore
from holdfast.testing.change_listener_contract import ChangeListenerContract
from holdfast.testing.derived_contracts import EventLogContract, new_event

pytestmark = pytest.mark.requirement("SE-9")


def _lock(directory: Path) -> StoreLock:
    return StoreLock(directory / "events.lock", SystemClock(), purpose="test")


class TestSqliteEventLog(EventLogContract):
    def open_log(self, directory: Path) -> SqliteEventLog:
        return SqliteEventLog(directory / "events.db", _lock(directory))


class TestSealedEventLog(EventLogContract):
    def open_log(self, directory: Path) -> SqliteEventLog:
        return SqliteEventLog(directory / "events.db", _lock(directory), Cipher(bytes(32)))


class TestEventLogInMemory(EventLogContract):
    def open_log(self, directory: Path) -> SqliteEventLog:
        return UnwritableEventLog(directory / "events.db", _lock(directory))


class _LocalListener(ChangeListenerContract):
    @contextmanager
    def open_store(self, directory: Path) -> Iterator[LocalStore]:
        fs, layout = LocalFilesystem(), _layout(directory)
        if not layout.exists():
            layout.create(fs, directory / "workspace")
        store = LocalStore(fs, layout, directory / "workspace", SystemClock(), purpose="test")
        with closing(store):
            store.make_ready()
            yield store


class TestPollingListener(_LocalListener):
    def listener_of(self, store: OpenStore) -> ChangeListener:
        return PollingListener(StoreLayout(store.directory))


@pytest.mark.linux
class TestInotifyListener(_LocalListener):
    def listener_of(self, store: OpenStore) -> ChangeListener:
        return InotifyListener(StoreLayout(store.directory))


def _layout(directory: Path) -> StoreLayout:
    return StoreLayout(directory / "home" / "stores" / ("0" * 20))


def test_numbers_are_kept_when_it_is_opened_again(tmp_path: Path) -> None:
    with closing(TestSqliteEventLog().open_log(tmp_path)) as log, log.exclusive():
        log.ingest([new_event(1)], EventCursors(operation=1))
        before = list(log.after(0, 10))
    with closing(TestSqliteEventLog().open_log(tmp_path)) as log:
        assert list(log.after(0, 10)) == before
        assert log.cursors() == EventCursors(operation=1)


@pytest.mark.parametrize("damage", [b"no database" * 1000, b"\0" * 8192])
def test_a_damaged_file_makes_way_and_numbers_go_on_above(tmp_path: Path, damage: bytes) -> None:
    with closing(TestSqliteEventLog().open_log(tmp_path)) as log, log.exclusive():
        log.ingest([new_event(1)], EventCursors(operation=1))
        before = log.newest()
    (tmp_path / "events.db-wal").unlink()
    (tmp_path / "events.db").write_bytes(damage)
    with closing(TestSqliteEventLog().open_log(tmp_path)) as log:
        try:
            log.cursors()
        except EventsLost:
            assert log.cursors() == EventCursors()
        assert log.newest() > before


def test_a_file_in_memory_writes_nothing(tmp_path: Path) -> None:
    with closing(TestEventLogInMemory().open_log(tmp_path)) as log:
        with log.exclusive():
            log.ingest([new_event(1)], EventCursors())
        assert len(log.after(0, 10)) == 1
    assert list(tmp_path.iterdir()) == []
