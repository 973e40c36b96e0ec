"""Every path of a tree, in order."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.changes import TreeLoader
from holdfast.domain.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join


def list_entries(
    load: TreeLoader, root: Digest, directory: bytes = b""
) -> Iterator[tuple[bytes, Entry]]:
    tree = load(root)
    for name, entry in sorted(tree.by_name.items()):
        path = join(directory, name)
        yield path, entry
        if isinstance(entry, DirectoryEntry):
            yield from list_entries(load, entry.digest, path)


def list_files(load: TreeLoader, root: Digest) -> Iterator[tuple[bytes, FileEntry]]:
    for path, entry in list_entries(load, root):
        if isinstance(entry, FileEntry):
            yield path, entry
