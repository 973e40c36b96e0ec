"""Turning scanned directories into tree objects, bottom-up, for what changed only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from holdfast.domain.digests import digest_of
from holdfast.domain.entries import MODE_MASK, DirectoryEntry, FileEntry, SymlinkEntry
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees import Tree, encode_tree
from holdfast.engine.scan.directory_state import SPARSE, DirectoryState

TreeSink: TypeAlias = Callable[[bytes, DirectoryState, Tree, bytes], None]
"""Receives (path, state, tree, encoded) of each directory that was built."""


def build_trees(state: DirectoryState, path: bytes, sink: TreeSink) -> None:
    """Give `state` and everything below it a digest; directories that have one are passed over."""
    if state.digest is not None:
        return
    directories: list[DirectoryEntry] = []
    for name in sorted(state.children):
        child = state.children[name]
        assert isinstance(child, DirectoryState)
        build_trees(child, join(path, name), sink)
        assert child.digest is not None
        directories.append(
            DirectoryEntry(name, child.key.mode & MODE_MASK, child.digest, child.files, child.size)
        )
    tree = Tree(
        files=_file_entries(state),
        directories=tuple(directories),
        symlinks=tuple(
            SymlinkEntry(link.name, link.target, link.mtime_ns) for link in state.symlinks
        ),
    )
    encoded = encode_tree(tree)
    state.digest = digest_of(encoded)
    state.files, state.size = tree.file_count, tree.size_bytes
    sink(path, state, tree, encoded)


def _file_entries(state: DirectoryState) -> tuple[FileEntry, ...]:
    chunks, links = state.chunks, state.links
    return tuple(
        FileEntry(
            name,
            row.mode & MODE_MASK,
            row.size,
            row.mtime_ns,
            Digest(row.digest),
            chunks.get(name),
            bool(row.flags & SPARSE),
            links.get(name),
        )
        for name, row in state.file_rows()
    )
