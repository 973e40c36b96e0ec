"""Which file contents lie below a path, and where else the same contents lie."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.engine.vault import Vault


class Contents:
    """Looks into trees, each distinct one once."""

    def __init__(self, vault: Vault, load: TreeLoader) -> None:
        self._vault = vault
        self._load = load
        self._pieces: dict[Digest, frozenset[Digest]] = {}

    def of_file(self, entry: FileEntry) -> frozenset[Digest]:
        """The objects that hold a file's bytes; none for an empty file, which says nothing."""
        if entry.size == 0:
            return frozenset()
        if entry.chunks is None:
            return frozenset((entry.digest,))
        if entry.chunks not in self._pieces:
            listed = decode_chunk_list(self._vault.objects.read(entry.chunks))
            self._pieces[entry.chunks] = frozenset(piece.digest for piece in listed)
        return self._pieces[entry.chunks]

    def below(self, entry: Entry, found: set[Digest], seen: set[Digest]) -> None:
        """Add the contents of an entry and all below it to `found`."""
        pending = [entry]
        while pending:
            at = pending.pop()
            if isinstance(at, FileEntry):
                found |= self.of_file(at)
            elif isinstance(at, DirectoryEntry) and at.digest not in seen:
                seen.add(at.digest)
                tree = self._load(at.digest)
                pending += [*tree.files, *tree.directories]

    def places(
        self, root: Digest, wanted: AbstractSet[Digest], known: dict[Digest, tuple[bytes, ...]]
    ) -> tuple[bytes, ...]:
        """Every path of a tree whose content is among `wanted`; `known` remembers subtrees."""
        pending = [root]
        while pending:
            digest = pending[-1]
            if digest in known:
                pending.pop()
                continue
            tree = self._load(digest)
            unknown = [d.digest for d in tree.directories if d.digest not in known]
            if unknown:
                pending += unknown
                continue
            here = [f.name for f in tree.files if not wanted.isdisjoint(self.of_file(f))]
            for directory in tree.directories:
                here += [join(directory.name, path) for path in known[directory.digest]]
            known[digest] = tuple(here)
            pending.pop()
        return known[root]
