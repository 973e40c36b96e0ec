"""The files of a store: for proofs that something is gone, for quarantine, and for small notes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from holdfast.domain.ids import Digest


class StoreFiles(Protocol):
    @property
    def directory(self) -> Path:
        """Everything of the store is below it."""
        ...

    def path_inside_workspace(self) -> bytes | None:
        """The user's data directory as a path of the workspace, if it is inside."""
        ...

    def is_sealed(self) -> bool:
        """Whether the store is encrypted, so that nothing may be put there as it is."""
        ...

    def problems(self) -> Iterator[str]:
        """What is wrong with the store as a place: its description, what it acknowledged."""
        ...

    def files(self) -> Iterator[Path]:
        """Every file of the store, whatever it is, for looking into its bytes."""
        ...

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        """The decrypted content of one of these files, part by part; nothing where the store is not
        encrypted, because the bytes of the file are its content."""
        ...

    def erase_leftovers(self) -> None:
        """Take away temporary files of killed writers; every removal so far is then durable."""
        ...

    def search_other_stores(
        self, digests: Collection[Digest]
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Workspaces of this user whose stores have any of these objects, and stores that cannot be
        asked: encrypted ones, and those that cannot be read."""
        ...

    def quarantine_directory(self, occasion: str) -> Path:
        """A fresh directory for what is taken out of the way."""
        ...

    def quarantine_note(self, occasion: str, name: str, data: bytes) -> None:
        """Leave a note about an occasion in a fresh directory of that kind; durable."""
        ...

    def read_purge_note(self) -> bytes | None:
        """What a removal that has not finished noted down, or None."""
        ...

    def write_purge_note(self, data: bytes) -> None:
        """Durable when it returns."""
        ...

    def remove_purge_note(self) -> None:
        """Durable when it returns."""
        ...

    def named_paths(self) -> tuple[bytes, ...]:
        """Ignored files of the workspace that tools named, the oldest first; durable."""
        ...

    def set_named_paths(self, paths: Sequence[bytes]) -> None:
        """In place of those that there were; durable when it returns. Called with the lock held."""
        ...
