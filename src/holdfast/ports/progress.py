"""Progress reports of long work.

Most of the time there is no listener: then `ProgressRelay.live` is False, and work that only serves
a listener is not done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    def advance(self, phase: str, done: int, total: int | None) -> None:
        """Called now and then; must be cheap and must not raise."""


class TransferProgress(Progress, Protocol):
    def transferred(self, size_bytes: int) -> None:
        """How many bytes the present phase has read or written so far; as `advance`."""


class NoProgress:
    """For callers that show nothing."""

    def advance(self, phase: str, done: int, total: int | None) -> None:
        return None

    def transferred(self, size_bytes: int) -> None:
        return None


class ProgressRelay:
    """One per opened workspace; passes everything on to the listener of the moment."""

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
