"""Looking into trees: one path, or every path in order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from holdfast.domain.changes import TreeLoader
from holdfast.domain.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join

_REMEMBERED = 64


def remembering(load: TreeLoader) -> TreeLoader:
    """For a look at many paths of a few trees: what lies in one directory reads it once. Not kept
    for longer than that look."""
    return lru_cache(maxsize=_REMEMBERED)(load)


def entry_at(load: TreeLoader, root: Digest, path: bytes) -> Entry | None:
    """What a tree has at `path`."""
    tree = load(root)
    *directories, name = path.split(b"/")
    for directory in directories:
        entry = tree.by_name.get(directory)
        if not isinstance(entry, DirectoryEntry):
            return None
        tree = load(entry.digest)
    return tree.by_name.get(name)


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
