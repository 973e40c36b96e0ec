"""A bar on standard error for work that takes longer than half a second.

Drawn by a thread of its own, on a terminal only, and wiped when the work is done. While the total
is unknown it only moves, to show that the work does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.interfaces.cli.terminal import Terminal

_FIRST_AFTER_S = 0.5
_EVERY_S = 0.1
_CELLS = 24
_BLOCK = 6
_WIPE = "\r\x1b[K"


class ProgressBar:
    """Implements `holdfast.ports.progress.Progress`."""

    def __init__(self, terminal: Terminal, title: str) -> None:
        self._terminal = terminal
        self._title = title
        self._done = 0
        self._total: int | None = None
        self._over = threading.Event()
        self._begun = time.monotonic()

    def advance(self, phase: str, done: int, total: int | None) -> None:
        self._title, self._done, self._total = phase, done, total

    def draw_until_over(self) -> None:
        delay_s = _FIRST_AFTER_S
        drawn = False
        while not self._over.wait(delay_s):
            self._write(_WIPE + self.text(time.monotonic() - self._begun))
            drawn, delay_s = True, _EVERY_S
        if drawn:
            self._write(_WIPE)

    def stop(self) -> None:
        self._over.set()

    def text(self, elapsed_s: float) -> str:
        if self._total:
            filled = min(self._done * _CELLS // self._total, _CELLS)
            bar = "━" * filled + "─" * (_CELLS - filled)
            return f"{self._title} {bar} {self._done:,} of {self._total:,}, {elapsed_s:.1f} s"
        # The block runs to the end and back.
        way = _CELLS - _BLOCK
        position = round(elapsed_s / _EVERY_S) % (2 * way)
        before = position if position <= way else 2 * way - position
        bar = "─" * before + "━" * _BLOCK + "─" * (way - before)
        return f"{self._title} {bar} {elapsed_s:.1f} s"

    def _write(self, text: str) -> None:
        try:
            self._terminal.err.write(text)
            self._terminal.err.flush()
        except (OSError, ValueError):
            self._over.set()


@contextmanager
def shown(terminal: Terminal, title: str, *, live: bool) -> Iterator[ProgressBar]:
    """A bar while the block runs; without a terminal it only takes the numbers."""
    bar = ProgressBar(terminal, title)
    if not live:
        yield bar
        return
    thread = threading.Thread(target=bar.draw_until_over, name="progress", daemon=True)
    thread.start()
    try:
        yield bar
    finally:
        bar.stop()
        thread.join()
