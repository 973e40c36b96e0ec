"""Where repositories inside the workspace lie in which commits are kept alive for checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class NestedRepositories(Protocol):
    """Durable, private, and sealed where the store is encrypted. What is kept alive in a repository
    has to be let go when the last checkpoint that knew of it is gone, so it is noted here."""

    def load(self) -> list[bytes]:
        """Git directories, relative to the workspace; none when the note cannot be used."""
        ...

    def add(self, git_directories: Sequence[bytes]) -> None:
        """Note some more; durable when it returns. Called with the store's lock held."""
        ...
