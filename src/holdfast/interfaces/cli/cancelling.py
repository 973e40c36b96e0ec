"""Answering Ctrl-C at once where unwinding may take a while, as the roll back of a restore does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from holdfast.interfaces.cli.invocation import Invocation


@contextmanager
def answering_ctrl_c(invocation: Invocation) -> Iterator[None]:
    """The first Ctrl-C of the block is heard on the screen before it unwinds anything. Unless
    somebody else has decided what Ctrl-C does."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not main or before is not signal.default_int_handler or invocation.json:
        yield
        return
    answered = False

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal answered
        if not answered:
            answered = True
            invocation.terminal.note("cancelling …")
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
