"""A file descriptor that a signal makes readable, so that a wait for other input ends too.

Python runs a signal handler between two of its own steps. A signal that arrives after the last step
and before a blocking wait would be handled only when that wait ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MOST_BYTES = 1024


@contextmanager
def wakeup_handle() -> Iterator[int | None]:
    """Readable as soon as a signal has arrived; None in threads that receive no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    readable, written = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(written, False)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    try:
        yield readable
    finally:
        signal.set_wakeup_fd(before)
        os.close(readable)
        os.close(written)


def drain(handle: int) -> None:
    """Empty the handle. A pending handler that raises, such as that of Ctrl-C, raises here."""
    try:
        os.read(handle, _MOST_BYTES)
    except BlockingIOError:
        return
