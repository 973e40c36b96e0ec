"""Builds trees from directory states, and computes the differences between two scans.

Only changed trees are rebuilt, bottom-up. Before that, they are annotated with facts that need the
whole tree: skipped paths, and files with several names.

Differences are computed from memory, and equal a comparison of the two trees. Counting gives up
where a name changed its type, where files have several names, and where only a directory's digest
is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from holdfast.domain.checkpoints import ChangeCounts, Skipped, SkipReason
from holdfast.domain.ids import Digest
from holdfast.domain.paths import basename, join, parent
from holdfast.domain.trees.entries import MODE_MASK, DirectoryEntry, SymlinkEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import FILE_ROW, encode_columns
from holdfast.domain.trees.tree import SPARSE as TREE_SPARSE
from holdfast.engine.scan.directory_state import (
    MANY_NAMES,
    ROW,
    SPARSE,
    DirectoryState,
    KnownChild,
)
from holdfast.values.classes import NamedTuple

TreeSink: TypeAlias = Callable[[bytes, DirectoryState, bytes], None]
"""Receives (path, state, encoded tree) of each directory that was built."""


def count_state_changes(old: DirectoryState, new: DirectoryState) -> ChangeCounts | None:
    """None if the states alone are not enough."""
    count = _Count()
    try:
        count.compare(old, new)
    except _StatesNotEnough:
        return None
    return ChangeCounts(count.added, count.modified, count.removed)


def changed_paths(old: DirectoryState, new: DirectoryState) -> Iterator[bytes] | None:
    """Files and links that differ; for an added or removed directory, its own path. None if the
    states alone are not enough."""
    found: list[Iterator[bytes]] = []
    waiting = [(b"", old, new)]
    while waiting:
        path, before, after = waiting.pop()
        found.append(_changed_names(path, before, after))
        for name in before.children.keys() | after.children.keys():
            one, other = before.children.get(name), after.children.get(name)
            if one is None or other is None:
                found.append(iter((join(path, name),)))
            elif one is other or (one.digest is not None and one.digest == other.digest):
                continue
            elif isinstance(one, DirectoryState) and isinstance(other, DirectoryState):
                waiting.append((join(path, name), one, other))
            else:
                return None
    return (path for paths in found for path in paths)


def _changed_names(path: bytes, old: DirectoryState, new: DirectoryState) -> Iterator[bytes]:
    if old.names == new.names:
        rows = zip(ROW.iter_unpack(old.rows), ROW.iter_unpack(new.rows), strict=True)
        for name, (before, after) in zip(new.file_names(), rows, strict=True):
            if before[6] != after[6] or (before[4] ^ after[4]) & MODE_MASK:
                yield join(path, name)
    else:
        yield from (join(path, name) for name, _ in _files(old).items() ^ _files(new).items())
    if old.symlinks != new.symlinks:
        yield from (join(path, name) for name, _ in _targets(old).items() ^ _targets(new).items())


class _StatesNotEnough(Exception):
    """The data in memory is not enough."""


class _Count:
    """Counts files and links, and a directory only if it is empty."""

    def __init__(self) -> None:
        self.added = 0
        self.modified = 0
        self.removed = 0

    def _total(self) -> int:
        return self.added + self.modified + self.removed

    def compare(self, old: DirectoryState, new: DirectoryState) -> None:
        if old is new or (old.digest is not None and old.digest == new.digest):
            return
        if old.links or new.links:
            raise _StatesNotEnough
        same_directories = old.children.keys() == new.children.keys()
        same_links = old.symlinks == new.symlinks
        if old.names != new.names:
            self._compare_names(_files(old), _files(new))
        elif old.rows != new.rows:
            self._count_edited(old, new)
        if not same_links:
            self._compare_names(_targets(old), _targets(new))
        if not same_directories or not same_links or old.names != new.names:
            _require_same_kinds(old, new)
        for name, child in new.children.items():
            before = old.children.get(name)
            if before is None:
                self.added += _entry_count(_loaded(child))
            elif before is not child:
                self._compare_child(before, child)
        if not same_directories:
            for name in old.children.keys() - new.children.keys():
                self.removed += _entry_count(_loaded(old.children[name]))

    def _compare_child(
        self, before: DirectoryState | KnownChild, child: DirectoryState | KnownChild
    ) -> None:
        old, new = _loaded(before), _loaded(child)
        counted = self._total()
        self.compare(old, new)
        if (old.key.mode ^ new.key.mode) & MODE_MASK and self._total() == counted:
            self.modified += 1

    def _count_edited(self, old: DirectoryState, new: DirectoryState) -> None:
        """Compares directories with the same names row by row."""
        for before, after in zip(ROW.iter_unpack(old.rows), ROW.iter_unpack(new.rows), strict=True):
            self.modified += before[6] != after[6] or (before[4] ^ after[4]) & MODE_MASK != 0

    def _compare_names(self, old: Mapping[bytes, object], new: Mapping[bytes, object]) -> None:
        common = old.keys() & new.keys()
        self.added += len(new) - len(common)
        self.modified += sum([old[name] != new[name] for name in common])
        self.removed += len(old) - len(common)


def _entry_count(state: DirectoryState) -> int:
    """The count for an added or removed directory: everything in it, or itself if it is empty."""
    if state.links:
        raise _StatesNotEnough
    below = sum([_entry_count(_loaded(child)) for child in state.children.values()])
    return len(state.rows) // ROW.size + len(state.symlinks) + below or 1


def _loaded(child: DirectoryState | KnownChild) -> DirectoryState:
    if not isinstance(child, DirectoryState):
        raise _StatesNotEnough
    return child


def _require_same_kinds(old: DirectoryState, new: DirectoryState) -> None:
    """A file that became a link or a directory is one change, not two."""
    for one, other in ((old, new), (new, old)):
        links = {link.name for link in one.symlinks}
        if links and (links & other.children.keys() or not links.isdisjoint(other.file_names())):
            raise _StatesNotEnough
        if one.children and not one.children.keys().isdisjoint(other.file_names()):
            raise _StatesNotEnough


def _files(state: DirectoryState) -> dict[bytes, tuple[int, bytes]]:
    rows = zip(state.file_names(), ROW.iter_unpack(state.rows), strict=True)
    return {name: (row[4] & MODE_MASK, row[6]) for name, row in rows}


def _targets(state: DirectoryState) -> dict[bytes, bytes]:
    return {link.name: link.target for link in state.symlinks}


def build_trees(state: DirectoryState, path: bytes, sink: TreeSink) -> None:
    """Give `state` and everything below it a digest; directories that have one are skipped."""
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
    """Equal for two names of one file. An inode alone may repeat on another mounted file system."""

    inode: int
    ctime_ns: int
    digest: bytes


def annotate(root: DirectoryState) -> tuple[DirectoryState, list[Skipped]]:
    """The tree with groups of hard links recorded, and everything left out, in path order."""
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
    """The state itself if nothing differs, else a copy. A remembered state is never changed,
    because the save may still fail."""
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
