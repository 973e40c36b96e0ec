"""How long work tells a person that it is going on."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def advance(self, phase: str, done: int, total: int | None) -> None:
        """Called now and then; must be cheap and must not raise."""
        ...


class NoProgress:
    """For callers that show nothing."""

    def advance(self, phase: str, done: int, total: int | None) -> None:
        return None
