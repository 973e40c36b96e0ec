"""The tree that a restore is about to write, looked into only where a scan left something out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.domain.entries import DirectoryEntry, Entry
from holdfast.domain.ids import Digest
from holdfast.domain.trees import Tree


class WantedTree:
    """One directory of it; loaded when first asked, with the ones above it."""

    __slots__ = ("_entries", "_load", "_name", "_parent", "_root")

    def __init__(
        self,
        load: Callable[[Digest], Tree],
        root: Digest | None,
        parent: WantedTree | None = None,
        name: bytes = b"",
    ) -> None:
        self._load = load
        self._root = root
        self._parent = parent
        self._name = name
        self._entries: Mapping[bytes, Entry] | None = None

    def below(self, name: bytes) -> WantedTree:
        return WantedTree(self._load, None, self, name)

    @property
    def entries(self) -> Mapping[bytes, Entry]:
        """What is wanted in this directory, by name; empty when it is not wanted itself."""
        if self._entries is None:
            digest = self._root
            if self._parent is not None:
                entry = self._parent.entries.get(self._name)
                digest = entry.digest if isinstance(entry, DirectoryEntry) else None
            self._entries = {} if digest is None else self._load(digest).by_name
        return self._entries
