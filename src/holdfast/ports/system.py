"""Time, randomness and processes. The engine never asks the system directly."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int:
        """Wall-clock nanoseconds since 1970; may jump either way (I7)."""

    def monotonic_ns(self) -> int: ...


class IdSource(Protocol):
    def new_id(self) -> str:
        """A new identifier that no other process creates: lower-case hexadecimal."""


class Processes(Protocol):
    """This user's processes: their identity, and whether they are running."""

    def own_identity(self) -> str:
        """This process, as text. No other process ever has the same identity, even after a reboot.
        It begins with the process id and a space."""

    def is_alive(self, identity: str) -> bool:
        """Whether that process is still running; False for any text that is not an identity. If the
        system does not report when a process started, any process with that id counts."""

    def agent_above(self, number: int) -> str | None:
        """The identity of the program that started a process, skipping shells in between; None if
        it is unknown or belongs to another user."""

    def ask_to_end(self, identity: str, *, wait_s: float) -> bool | None:
        """Ask exactly that process to exit (SIGTERM), wait, and return whether it has exited.

        None if it was not asked: it is gone, its identity cannot be proven, or it started this
        process."""
