"""The contract of `holdfast.ports.event_log.ChangeListener`, as tests."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, closing
from pathlib import Path

from holdfast.domain.ids import SessionId
from holdfast.ports.event_log import ChangeListener
from holdfast.ports.store import OpenStore

_PATIENCE_S = 30.0
_ONE = SessionId("one")


class ChangeListenerContract:
    """Subclass it, and define how to open the same store, once or more often."""

    def open_store(self, directory: Path) -> AbstractContextManager[OpenStore]:
        raise NotImplementedError

    def listener_of(self, store: OpenStore) -> ChangeListener:
        return store.open_change_listener()

    def test_a_write_to_the_catalog_wakes_it(self, tmp_path: Path) -> None:
        with (
            self.open_store(tmp_path) as store,
            self.open_store(tmp_path) as other,
            closing(self.listener_of(store)) as listener,
        ):
            for value in ("1", "2"):
                settle(listener)
                write_catalog(other, value)
                assert wakes(listener)

    def test_a_write_to_the_story_wakes_it(self, tmp_path: Path) -> None:
        with (
            self.open_store(tmp_path) as store,
            self.open_store(tmp_path) as other,
            closing(self.listener_of(store)) as listener,
        ):
            settle(listener)
            assert other.story.set_fact(_ONE, "seen", "1", expected=None)
            assert wakes(listener)

    def test_a_thread_that_waits_is_woken_by_another(self, tmp_path: Path) -> None:
        with (
            self.open_store(tmp_path) as store,
            self.open_store(tmp_path) as other,
            closing(self.listener_of(store)) as listener,
        ):
            settle(listener)
            writing = threading.Timer(0.05, write_catalog, (other, "1"))
            writing.start()
            assert wakes(listener)
            writing.join()

    def test_a_stopped_listener_never_waits_again(self, tmp_path: Path) -> None:
        with self.open_store(tmp_path) as store, closing(self.listener_of(store)) as listener:
            settle(listener)
            stopping = threading.Timer(0.05, listener.stop)
            stopping.start()
            assert wakes(listener)
            stopping.join()
            listener.stop()
            assert wakes(listener)


def wakes(listener: ChangeListener) -> bool:
    """It may also return early without a change, for example when another file was written."""
    return any(listener.wait(_PATIENCE_S) for _ in range(100))


def settle(listener: ChangeListener) -> None:
    """Until it no longer wakes, as it may without a reason."""
    for _ in range(100):
        if not listener.wait(0.01):
            return
    raise AssertionError("it wakes all the time, although nothing is written")


def write_catalog(store: OpenStore, value: str) -> None:
    with store.hold(), store.catalog.transaction() as transaction:
        transaction.set_setting("a", value)
