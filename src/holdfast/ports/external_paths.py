"""The paths outside the workspace that tools have named, until others take their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ExternalPaths(Protocol):
    """Durable, private, and sealed where the store is encrypted."""

    def exist(self) -> bool:
        """Whether any was ever named; one system call."""
        ...

    def load(self) -> list[bytes]:
        """Absolute paths, the one that was named first at the beginning; `StoreDamaged` when they
        cannot be read."""
        ...

    def add(self, paths: Sequence[bytes]) -> None:
        """Name some, which are then the newest; durable when it returns. Called with the store's
        lock held."""
        ...

    def drop(self, paths: Sequence[bytes]) -> None:
        """Take away these and all below them; durable when it returns. Called with the store's
        lock held."""
        ...
