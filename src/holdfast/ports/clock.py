"""Time and randomness, from the edge: the engine never asks the system itself."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int:
        """Wall-clock nanoseconds since 1970; may jump either way (I7)."""
        ...

    def monotonic_ns(self) -> int: ...


class IdSource(Protocol):
    def new_id(self) -> str:
        """A fresh identifier that no other process makes: lower-case hexadecimal."""
        ...
