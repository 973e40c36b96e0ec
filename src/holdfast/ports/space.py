"""What a store takes on disk, what there is left, and giving some of it back."""

from __future__ import annotations

from typing import Protocol


class SpaceMeter(Protocol):
    def size_bytes(self) -> int:
        """Everything the store takes on disk: content, catalog, logs, caches."""
        ...

    def others_bytes(self, own_bytes: int) -> int:
        """What the other stores of this user take, as of the last minutes; they learn what this
        one takes."""
        ...

    def free_bytes(self) -> int:
        """What the disk of the store has left for this user."""
        ...

    def fold_logs(self) -> None:
        """Give back what write-ahead logs take beside their databases, with the lock held; one
        that somebody reads stays as it is."""
        ...

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        """Remove temporary files of killed processes that are older than that; their names."""
        ...

    def read_upkeep(self) -> dict[str, int]:
        """What was noted about the last cleanup; may be lost, and is then empty."""
        ...

    def note_upkeep(self, **facts: int) -> None:
        """Add to that, or change it."""
        ...
