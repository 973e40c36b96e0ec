"""Waiting so that no signal is missed.

Python hears of a signal between two of its own steps. One that comes after the last of them and
before a wait for something else would be heard only when that has come; so its sign is waited for
too.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_AT_ONCE = 1024


@contextmanager
def signs_of_signals() -> Iterator[int | None]:
    """A handle that can be read from as soon as a signal has come; None in threads that hear of
    none."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    signs, written = os.pipe()
    os.set_blocking(signs, False)
    os.set_blocking(written, False)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    try:
        yield signs
    finally:
        signal.set_wakeup_fd(before)
        os.close(signs)
        os.close(written)


def heard(signs: int) -> None:
    """Take the signs away; if one was of a signal that ends us, that is raised here at last."""
    try:
        os.read(signs, _AT_ONCE)
    except BlockingIOError:
        return
