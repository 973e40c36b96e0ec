"""A signal that comes just before a wait wakes it."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator

import pytest

from holdfast.api.automation import open_watcher
from holdfast.interfaces.daemon.instance import listen
from holdfast.interfaces.daemon.server import Daemon
from holdfast.interfaces.signal_wakeup import drain, wakeup_handle
from tests.support.daemons import runtime_directory

pytestmark = pytest.mark.requirement("CL-2")

LONG_MS = 60_000


@pytest.fixture
def heard_signals() -> Iterator[list[int]]:
    """A signal that Python hears of as of any other, and that does nothing."""
    heard_of: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard_of.append(number))
    yield heard_of
    signal.signal(signal.SIGUSR1, before)


def test_the_sign_of_a_signal_can_be_waited_for_and_is_gone_when_heard(
    heard_signals: list[int],
) -> None:
    with wakeup_handle() as signs:
        assert signs is not None
        drain(signs)
        signal.raise_signal(signal.SIGUSR1)
        assert select.select([signs], [], [], 60)[0] == [signs]
        drain(signs)
        assert select.select([signs], [], [], 0)[0] == []
    assert heard_signals == [signal.SIGUSR1]


def test_a_thread_that_hears_of_no_signal_waits_for_none() -> None:
    found: list[int | None] = []

    def look() -> None:
        with wakeup_handle() as signs:
            found.append(signs)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [None]


@pytest.mark.requirement("AU-6")
def test_a_daemon_does_not_sleep_through_a_signal(
    heard_signals: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Already delivered, and the wait begins anyway: the sign of it has to end the wait."""
    woken: list[bool] = []

    class Late:
        def __init__(self) -> None:
            self._real = real()

        def register(self, fd: int, events: int) -> None:
            self._real.register(fd, events)

        def poll(self, timeout: float) -> None:
            signal.raise_signal(signal.SIGUSR1)
            woken.append(bool(self._real.poll(LONG_MS)))
            daemon.end()

    real = select.poll
    with runtime_directory(), monkeypatch.context() as patch:
        daemon = Daemon(listen(os.environ), open_watcher(), os.environ, idle_s=0)
        patch.setattr(select, "poll", Late)
        daemon.run()
    assert woken == [True]
    assert heard_signals == [signal.SIGUSR1]
