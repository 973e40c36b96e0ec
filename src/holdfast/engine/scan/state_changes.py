"""What differs between two scans, from what is in memory anyway; and which files of a changed
directory have not changed.

Gives the numbers that a comparison of the two trees gives, without reading either from the store.
Counting gives up where a name became something of another kind and where files have several names,
both where a directory is known by its digest alone.

    captured by these very rules last time, and of no special kind → asked for all at once
    the system says of it what it said then                        → it is what it was

One file of hundreds in a directory was created or removed: judging each of the others again is
most of what such a save would cost. Guarantee: `unchanged_files` keeps a file only where looking at
it by itself would keep it. It passes over files with notes, with several names or changed a moment
ago, and those that belong to a database as long as it is there.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping

from holdfast.domain.checkpoints import ChangeCounts
from holdfast.domain.paths import join
from holdfast.domain.sqlite_files import COMPANIONS, LOG
from holdfast.domain.trees.entries import MODE_MASK
from holdfast.engine.scan.directory_state import ROW, SPARSE, DirectoryState, FileRow, KnownChild
from holdfast.ports.filesystem import Filesystem


def count_state_changes(old: DirectoryState, new: DirectoryState) -> ChangeCounts | None:
    """None when the states alone do not tell."""
    count = _Count()
    try:
        count.compare(old, new)
    except _TreesMustTell:
        return None
    return ChangeCounts(count.added, count.modified, count.removed)


def changed_paths(old: DirectoryState, new: DirectoryState) -> Iterator[bytes] | None:
    """Files and links that differ; of a directory that came or went, its own path. None when the
    states alone do not tell."""
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


class _TreesMustTell(Exception):
    """What is in memory is not enough."""


class _Count:
    """What people count: files and links, and a directory only when nothing in it says it."""

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
            raise _TreesMustTell
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
                self._came(child)
            elif before is not child:
                self._compare_child(before, child)
        if not same_directories:
            for name in old.children.keys() - new.children.keys():
                self._went(old.children[name])

    def _compare_child(
        self, before: DirectoryState | KnownChild, child: DirectoryState | KnownChild
    ) -> None:
        old, new = _loaded(before), _loaded(child)
        counted = self._total()
        self.compare(old, new)
        if (old.key.mode ^ new.key.mode) & MODE_MASK and self._total() == counted:
            self.modified += 1

    def _came(self, child: DirectoryState | KnownChild) -> None:
        self.added += _things_in(_loaded(child))

    def _went(self, child: DirectoryState | KnownChild) -> None:
        self.removed += _things_in(_loaded(child))

    def _count_edited(self, old: DirectoryState, new: DirectoryState) -> None:
        """The same names: rows stand side by side."""
        for before, after in zip(ROW.iter_unpack(old.rows), ROW.iter_unpack(new.rows), strict=True):
            self.modified += before[6] != after[6] or (before[4] ^ after[4]) & MODE_MASK != 0

    def _compare_names(self, old: Mapping[bytes, object], new: Mapping[bytes, object]) -> None:
        common = old.keys() & new.keys()
        self.added += len(new) - len(common)
        self.modified += sum([old[name] != new[name] for name in common])
        self.removed += len(old) - len(common)


def _things_in(state: DirectoryState) -> int:
    """What a directory that came or went counts as: all that it holds, or itself if that is
    nothing."""
    if state.links:
        raise _TreesMustTell
    below = sum([_things_in(_loaded(child)) for child in state.children.values()])
    return len(state.rows) // ROW.size + len(state.symlinks) + below or 1


def _loaded(child: DirectoryState | KnownChild) -> DirectoryState:
    if not isinstance(child, DirectoryState):
        raise _TreesMustTell
    return child


def _require_same_kinds(old: DirectoryState, new: DirectoryState) -> None:
    """A file that became a link, or a directory, is one change and not two."""
    for one, other in ((old, new), (new, old)):
        links = {link.name for link in one.symlinks}
        if links and (links & other.children.keys() or not links.isdisjoint(other.file_names())):
            raise _TreesMustTell
        if one.children and not one.children.keys().isdisjoint(other.file_names()):
            raise _TreesMustTell


def _files(state: DirectoryState) -> dict[bytes, tuple[int, bytes]]:
    rows = zip(state.file_names(), ROW.iter_unpack(state.rows), strict=True)
    return {name: (row[4] & MODE_MASK, row[6]) for name, row in rows}


def _targets(state: DirectoryState) -> dict[bytes, bytes]:
    return {link.name: link.target for link in state.symlinks}


def unchanged_files(
    fs: Filesystem,
    dir_fd: int,
    known: Mapping[bytes, FileRow],
    present: Collection[bytes],
    special: Container[bytes],
) -> dict[bytes, FileRow]:
    """Those of the `known` files that are still what they were; none where the system cannot be
    asked for all at once."""
    with_log = {name.removesuffix(LOG) for name in present if name.endswith(LOG)}
    asked = [
        (name, row)
        for name, row in known.items()
        if name in present
        and not row.flags & ~SPARSE
        and name not in special
        and name not in with_log  # which may have brought it, and then before or after others
        and not name.endswith(COMPANIONS)
    ]
    told = fs.stat_all([name for name, _ in asked], dir_fd=dir_fd)
    if told is None:
        return {}
    looks = zip(asked, fs.stat_numbers(told), strict=True)
    return {name: row for (name, row), now in looks if row[:5] == now}
