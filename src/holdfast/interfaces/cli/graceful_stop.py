"""Stopping a command that works until it is told to stop: between two pieces of work, not in one.

a signal while it waits   → ends it
a signal while it works   → noted; ends it as soon as the piece of work is done
a second one meanwhile    → unwinds the piece of work, as in any other command

Not guaranteed: that signals are heard where the command runs in a thread of somebody's program.
They reach the main thread alone, and stay what that program has made of them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PART_S = 1.0
"""A signal that arrives while Python is falling asleep is only heard when it wakes up."""


class Stopped(BaseException):
    """A signal asked to stop, and nothing was under way."""


class GracefulStop:
    """Requested by signals; `wait` then raises `Stopped`."""

    def __init__(self) -> None:
        self._asked = False
        self._waiting = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Signals that somebody decided to ignore stay ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        taken = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
        for number in taken:
            signal.signal(number, self._take)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, before[number])

    def wait(self, happened: threading.Event, seconds: float | None) -> None:
        # In this order: a signal between the two lines is either seen here or raised.
        self._waiting = True
        try:
            if self._asked:
                raise Stopped
            _wait_in_parts(happened, seconds)
        finally:
            self._waiting = False

    def _take(self, number: int, frame: FrameType | None) -> None:
        again, self._asked = self._asked, True
        if again:
            raise KeyboardInterrupt
        if self._waiting:
            raise Stopped


def _wait_in_parts(happened: threading.Event, seconds: float | None) -> None:
    while seconds is None or seconds > 0:
        if happened.wait(_PART_S if seconds is None else min(seconds, _PART_S)):
            return
        seconds = None if seconds is None else seconds - _PART_S
