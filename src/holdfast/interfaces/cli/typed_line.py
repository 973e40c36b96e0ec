"""A line that a person types, waited for so that no Ctrl-C is missed.

Python hears of a signal between two of its own steps. One that comes after the last of them and
before the wait for a key would be heard only when a key is pressed; so its sign is waited for too.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def typed_line() -> str:
    """Empty at the end of the input."""
    if threading.current_thread() is threading.main_thread():  # only it hears signals
        with _signs_of_signals() as signs:
            typed = sys.stdin.fileno()
            while typed not in select.select([typed, signs], [], [])[0]:
                os.read(signs, 1024)  # and if it was one that ends us, it is raised here
    return sys.stdin.readline()


@contextmanager
def _signs_of_signals() -> Iterator[int]:
    """A handle that can be read from as soon as a signal has come."""
    signs, written = os.pipe()
    os.set_blocking(written, False)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    try:
        yield signs
    finally:
        signal.set_wakeup_fd(before)
        os.close(signs)
        os.close(written)
