"""Progress reports of long work.

Usually there is no listener. `ProgressRelay.live` is then False, and work that only serves a
listener is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    def advance(self, phase: str, done: int, total: int | None) -> None:
        """Called from time to time; must be cheap and must not raise."""


class TransferProgress(Progress, Protocol):
    def transferred(self, size_bytes: int) -> None:
        """How many bytes the current phase has read or written so far. Like `advance`, must be
        cheap."""


class NoProgress:
    """For callers that show no progress."""

    def advance(self, phase: str, done: int, total: int | None) -> None:
        return None

    def transferred(self, size_bytes: int) -> None:
        return None


class ProgressRelay:
    """Forwards reports to the current listener. One per opened workspace."""

    __slots__ = ("_listener", "live")

    def __init__(self) -> None:
        self._listener: TransferProgress = NoProgress()
        self.live = False

    @contextmanager
    def reporting_to(self, listener: TransferProgress) -> Iterator[None]:
        before, self._listener = self._listener, listener
        was_live, self.live = self.live, True
        try:
            yield
        finally:
            self._listener, self.live = before, was_live

    def advance(self, phase: str, done: int, total: int | None) -> None:
        self._listener.advance(phase, done, total)

    def transferred(self, size_bytes: int) -> None:
        self._listener.transferred(size_bytes)
