"""What a restore notes before it changes anything, so that a crash can be recovered from."""

from __future__ import annotations

from typing import Protocol


class RestoreJournal(Protocol):
    """The journal, and a note beside it about permissions. Both are sealed where the store is
    encrypted, and empty when their seal does not match. Called with the store's lock held."""

    def read(self) -> bytes | None:
        """The journal of a restore that has not finished, or None."""
        ...

    def write(self, data: bytes) -> None:
        """Durable when it returns (I4)."""
        ...

    def remove(self) -> None: ...

    def quarantine(self, occasion: str) -> None:
        """Take a journal that cannot be used out of the way without deleting it."""
        ...

    def read_note(self) -> bytes | None:
        """What a restore that has not begun its changes left to be put right, or None."""
        ...

    def write_note(self, data: bytes) -> None:
        """Durable when it returns."""
        ...

    def remove_note(self) -> None: ...
