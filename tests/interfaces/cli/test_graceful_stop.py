"""A command that works until it is ended finishes what it is doing."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from holdfast.interfaces.cli.commands.watch import GracefulStop, Stopped

pytestmark = pytest.mark.requirement("CL-1")

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def ending() -> GracefulStop:
    return GracefulStop()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_work_is_reported_at_the_next_wait(
    ending: GracefulStop, number: int
) -> None:
    with ending.on_signals():
        signal.raise_signal(number)
        done = "the work went on"
        with pytest.raises(Stopped):
            ending.wait(threading.Event(), None)
    assert done


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_unwinds_the_work(ending: GracefulStop, number: int) -> None:
    with ending.on_signals():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_a_signal_during_a_wait_ends_it(ending: GracefulStop) -> None:
    class Waited(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            signal.raise_signal(signal.SIGTERM)
            raise AssertionError("the signal comes first")

    with ending.on_signals(), pytest.raises(Stopped):
        ending.wait(Waited(), None)


@pytest.mark.parametrize(("seconds", "expected"), [(None, [1.0] * 4), (2.5, [1.0, 1.0, 0.5])])
def test_a_signal_that_arrives_while_python_falls_asleep_is_heard_soon(
    ending: GracefulStop, seconds: float | None, expected: list[float]
) -> None:
    """A long wait is many short ones: such a signal is noted, and wakes no thread."""
    waited: list[float | None] = []

    class Silent(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            return len(waited) == 4

    ending.wait(Silent(), seconds)
    assert waited == expected


def test_what_was_decided_about_signals_before_holds_again(ending: GracefulStop) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        handlers = [signal.getsignal(number) for number in SIGNALS]
        with ending.on_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not handlers[1]
        assert [signal.getsignal(number) for number in SIGNALS] == handlers
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_command_in_a_thread_leaves_signals_to_the_program_it_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole `watch`, up to the first wait."""
    from holdfast.interfaces.cli.main import main

    (tmp_path / "file").write_text("content")
    waited = threading.Event()

    def wait(self: GracefulStop, happened: threading.Event, seconds: float | None) -> None:
        waited.set()
        raise Stopped

    monkeypatch.setattr(GracefulStop, "wait", wait)
    handlers = [signal.getsignal(number) for number in SIGNALS]
    statuses: list[int] = []
    watching = threading.Thread(
        target=lambda: statuses.append(main(["-C", str(tmp_path), "watch"]))
    )
    watching.start()
    watching.join()
    assert waited.is_set()
    assert statuses == [0]
    assert [signal.getsignal(number) for number in SIGNALS] == handlers
