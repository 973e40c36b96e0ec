"""Turning scanned directories into tree objects, bottom-up, for what changed only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from holdfast.domain.digests import digest_of
from holdfast.domain.entries import MODE_MASK, DirectoryEntry, SymlinkEntry
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees import FILE_ROW, encode_columns
from holdfast.domain.trees import SPARSE as TREE_SPARSE
from holdfast.engine.scan.directory_state import ROW, SPARSE, DirectoryState

TreeSink: TypeAlias = Callable[[bytes, DirectoryState, bytes], None]
"""Receives (path, state, encoded tree) of each directory that was built."""


def build_trees(state: DirectoryState, path: bytes, sink: TreeSink) -> None:
    """Give `state` and everything below it a digest; directories that have one are passed over."""
    if state.digest is not None:
        return
    directories: list[DirectoryEntry] = []
    for name in sorted(state.children):
        child = state.children[name]
        assert isinstance(child, DirectoryState)
        if child.digest is None:
            build_trees(child, join(path, name), sink)
        assert child.digest is not None
        mode = child.key.mode & MODE_MASK
        directories.append(DirectoryEntry(name, mode, child.digest, child.files, child.size))
    symlinks = [SymlinkEntry(link.name, link.target, link.mtime_ns) for link in state.symlinks]
    pack = FILE_ROW.pack
    rows: list[bytes] = []
    size = 0
    for _, size_bytes, mtime_ns, _, mode, flags, digest in ROW.iter_unpack(state.rows):
        sparse = TREE_SPARSE if flags & SPARSE else 0
        rows.append(pack(mode & MODE_MASK, sparse, size_bytes, mtime_ns, digest))
        size += size_bytes
    encoded = encode_columns(
        state.names, rows, directories, symlinks, _by_number(state, state.chunks), _links(state)
    )
    state.digest = digest_of(encoded)
    state.files = len(rows) + len(symlinks) + sum(entry.files for entry in directories)
    state.size = size + sum(entry.size for entry in directories)
    sink(path, state, encoded)


def _by_number(state: DirectoryState, details: Mapping[bytes, Digest]) -> list[tuple[int, Digest]]:
    if not details:
        return []
    return [(i, details[n]) for i, n in enumerate(state.file_names()) if n in details]


def _links(state: DirectoryState) -> list[tuple[int, bytes]]:
    if not state.links:
        return []
    return [(i, state.links[n]) for i, n in enumerate(state.file_names()) if n in state.links]
