"""Time, randomness and processes, from the edge: the engine never asks the system itself."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int:
        """Wall-clock nanoseconds since 1970; may jump either way (I7)."""

    def monotonic_ns(self) -> int: ...


class IdSource(Protocol):
    def new_id(self) -> str:
        """A fresh identifier that no other process makes: lower-case hexadecimal."""


class Processes(Protocol):
    """Processes of this user: who they are, and whether they still run."""

    def own_identity(self) -> str:
        """This process, as text. No other process ever has the same, even after a restart of the
        machine. It begins with the process number and a space."""

    def is_alive(self, identity: str) -> bool:
        """Whether that process still runs; False for any text that is no identity. Where the system
        does not tell when a process began, any process with its number counts."""

    def agent_above(self, number: int) -> str | None:
        """The identity of the program that started a process, past the shells between; None if it
        is unknown or belongs to another user."""

    def ask_to_end(self, identity: str, *, wait_s: float) -> bool | None:
        """Ask that very process to end (SIGTERM), wait, and say whether it has ended. None if it
        was not asked: it is gone, it cannot be proven to be the same process, or this process was
        started by it."""
