"""Trees whose paths a scan must not leave out, looked into only where it left something out.

A restore needs them: what it is about to write has to be saved first, and what HEAD has must be
seen to be able to go, whatever the rules in force now say.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.domain.entries import DirectoryEntry
from holdfast.domain.ids import Digest
from holdfast.domain.trees import Tree


class WantedTree:
    """One directory of them; loaded when first asked, with the ones above it."""

    __slots__ = ("_load", "_name", "_names", "_parent", "_roots", "_trees")

    def __init__(
        self,
        load: Callable[[Digest], Tree],
        roots: tuple[Digest, ...],
        parent: WantedTree | None = None,
        name: bytes = b"",
    ) -> None:
        self._load = load
        self._roots = roots
        self._parent = parent
        self._name = name
        self._trees: list[Tree] | None = None
        self._names: frozenset[bytes] | None = None

    def below(self, name: bytes) -> WantedTree:
        return WantedTree(self._load, (), self, name)

    @property
    def trees(self) -> list[Tree]:
        """The directory in each of the trees that has it."""
        if self._trees is None:
            digests = set(self._roots)
            for tree in self._parent.trees if self._parent is not None else ():
                entry = tree.by_name.get(self._name)
                if isinstance(entry, DirectoryEntry):
                    digests.add(entry.digest)
            self._trees = [self._load(digest) for digest in sorted(digests)]
        return self._trees

    @property
    def names(self) -> frozenset[bytes]:
        """What is wanted in this directory."""
        if self._names is None:
            self._names = frozenset(name for tree in self.trees for name in tree.by_name)
        return self._names
