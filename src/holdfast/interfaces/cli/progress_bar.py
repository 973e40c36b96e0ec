"""A bar on standard error for work that takes longer than half a second.

A separate thread draws it, only on a terminal, and removes it when the work is done. While the
total is unknown, the bar only moves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.interfaces.cli.terminal import Terminal
from holdfast.interfaces.cli.text_layout import cell_width
from holdfast.interfaces.cli.wording import size

_FIRST_AFTER_S = 0.5
_EVERY_S = 0.1
_CELLS = 24
_FEWEST_CELLS = 8
_BLOCK = 6
_WIPE = "\r\x1b[K"


class ProgressBar:
    """Implements `holdfast.ports.progress.TransferProgress`."""

    def __init__(self, terminal: Terminal, title: str) -> None:
        self._terminal = terminal
        self._title = title
        self._done = 0
        self._total: int | None = None
        self._moved_bytes = 0
        self._over = threading.Event()
        self._begun = time.monotonic()

    def advance(self, phase: str, done: int, total: int | None) -> None:
        if phase != self._title:
            self._title, self._moved_bytes = phase, 0
        self._done, self._total = done, total

    def transferred(self, size_bytes: int) -> None:
        self._moved_bytes = size_bytes

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
        """One line that fits; without room for both, numbers take precedence over the bar."""
        done, total, moved = self._done, self._total, self._moved_bytes
        numbers = f"{elapsed_s:.1f} s"
        if moved:
            numbers = f"{size(moved)}, {numbers}"
        if total:
            numbers = f"{done:,} of {total:,}, {numbers}"
        elif done:
            numbers = f"{done:,}, {numbers}"
        room = self._terminal.width - 1 - cell_width(f"{self._title}  {numbers}")
        if room < _FEWEST_CELLS:
            return f"{self._title} {numbers}"[: self._terminal.width - 1]
        cells = min(room, _CELLS)
        bar = _filled(cells, done / total) if total else _moving(cells, elapsed_s)
        return f"{self._title} {bar} {numbers}"

    def _write(self, text: str) -> None:
        try:
            self._terminal.err.write(text)
            self._terminal.err.flush()
        except (OSError, ValueError):
            self._over.set()


def _filled(cells: int, share: float) -> str:
    filled = min(int(share * cells), cells)
    return "━" * filled + "─" * (cells - filled)


def _moving(cells: int, elapsed_s: float) -> str:
    """A block that moves to the end and back."""
    block = min(_BLOCK, cells - 1)
    way = cells - block
    position = round(elapsed_s / _EVERY_S) % (2 * way)
    before = position if position <= way else 2 * way - position
    return "─" * before + "━" * block + "─" * (way - before)


@contextmanager
def show_progress(terminal: Terminal, title: str) -> Iterator[ProgressBar]:
    """Show a bar while the block runs."""
    bar = ProgressBar(terminal, title)
    thread = threading.Thread(target=bar.draw_until_over, name="progress", daemon=True)
    thread.start()
    try:
        yield bar
    finally:
        bar.stop()
        thread.join()
