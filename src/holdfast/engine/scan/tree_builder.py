"""Turning scanned directories into tree objects, bottom-up, for what changed only.

Annotated first with what only shows when the whole tree is known: paths left out, and files with
several names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TypeAlias

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.ids import Digest
from holdfast.domain.paths import basename, join, parent
from holdfast.domain.trees.entries import MODE_MASK, DirectoryEntry, SymlinkEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import FILE_ROW, encode_columns
from holdfast.domain.trees.tree import SPARSE as TREE_SPARSE
from holdfast.engine.scan.directory_state import MANY_NAMES, ROW, SPARSE, DirectoryState
from holdfast.values.classes import NamedTuple

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


class _Identity(NamedTuple):
    """Equal for two names of one file: an inode alone repeats on another mounted file system."""

    inode: int
    ctime_ns: int
    digest: bytes


def annotate(root: DirectoryState) -> tuple[DirectoryState, list[Skipped]]:
    """The tree with each group of names recorded, and everything left out, in path order."""
    if not root.noted:
        return root, []
    skipped: list[Skipped] = []
    names: defaultdict[_Identity, list[bytes]] = defaultdict(list)
    _collect(root, b"", skipped, names)
    links: dict[bytes, dict[bytes, bytes]] = {}
    for paths in names.values():
        if len(paths) == 1:
            skipped.append(Skipped(paths[0], SkipReason.OUTSIDE_LINK))
            continue
        for path in paths:
            links.setdefault(parent(path), {})[basename(path)] = min(paths)
    return _with_links(root, b"", links), sorted(skipped, key=lambda s: s.path)


def _collect(
    state: DirectoryState,
    path: bytes,
    skipped: list[Skipped],
    names: defaultdict[_Identity, list[bytes]],
) -> None:
    skipped.extend(state.skipped)
    for name, row in state.file_rows():
        if row.flags & MANY_NAMES:
            names[_Identity(row.inode, row.ctime_ns, row.digest)].append(join(path, name))
    for name, child in _noted_children(state):
        _collect(child, join(path, name), skipped, names)


def _noted_children(state: DirectoryState) -> list[tuple[bytes, DirectoryState]]:
    return [
        (name, child)
        for name, child in state.children.items()
        if isinstance(child, DirectoryState) and child.noted
    ]


def _with_links(
    state: DirectoryState, path: bytes, links: dict[bytes, dict[bytes, bytes]]
) -> DirectoryState:
    """The state itself when nothing differs. Else a copy: a remembered state is never changed,
    because the save that this scan is for may still fail."""
    result = state
    for name, child in _noted_children(state):
        linked = _with_links(child, join(path, name), links)
        if linked is not child:
            result = state.copy() if result is state else result
            result.children[name] = linked
    expected = links.get(path, {})
    if state.links != expected:
        result = state.copy() if result is state else result
        result.links = expected
    return result
