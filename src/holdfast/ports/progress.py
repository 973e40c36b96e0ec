"""How long work tells a person that it is going on."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def advance(self, phase: str, done: int, total: int | None) -> None:
        """Called now and then; must be cheap and must not raise."""
        ...


class TransferProgress(Progress, Protocol):
    def transferred(self, size_bytes: int) -> None:
        """How many bytes the present phase has read or written so far; as `advance`."""
        ...


class NoProgress:
    """For callers that show nothing."""

    def advance(self, phase: str, done: int, total: int | None) -> None:
        return None

    def transferred(self, size_bytes: int) -> None:
        return None
