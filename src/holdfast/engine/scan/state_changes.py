"""Counting what differs between two scans, from what is in memory anyway.

Answers for the everyday case, edited, added and removed files; gives up where directories came,
went or changed, which the comparison of trees counts as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.checkpoints import ChangeCounts
from holdfast.domain.entries import MODE_MASK
from holdfast.engine.scan.directory_state import ROW, DirectoryState


def count_state_changes(old: DirectoryState, new: DirectoryState) -> ChangeCounts | None:
    """None when the states alone do not tell."""
    if old is new or old.digest == new.digest:
        return ChangeCounts()
    if old.children.keys() != new.children.keys() or old.links or new.links:
        return None
    here = _compare(_files(old), _files(new)) if old.names != new.names else _edited(old, new)
    links = _compare(
        {link.name: link.target for link in old.symlinks},
        {link.name: link.target for link in new.symlinks},
    )
    total = _sum(here, links)
    for name, child in new.children.items():
        before = old.children[name]
        if before is child:
            continue
        if not isinstance(before, DirectoryState) or not isinstance(child, DirectoryState):
            return None
        below = count_state_changes(before, child)
        if below is None or before.key.mode != child.key.mode:
            return None
        total = _sum(total, below)
    if {link.name for link in old.symlinks} & set(new.file_names()) or (
        {link.name for link in new.symlinks} & set(old.file_names())
    ):
        return None  # a file became a link or a link a file: one change, not two
    return total


def _edited(old: DirectoryState, new: DirectoryState) -> ChangeCounts:
    """The same names: rows stand side by side."""
    modified = 0
    for before, after in zip(ROW.iter_unpack(old.rows), ROW.iter_unpack(new.rows), strict=True):
        modified += before[6] != after[6] or (before[4] ^ after[4]) & MODE_MASK != 0
    return ChangeCounts(modified=modified)


def _files(state: DirectoryState) -> dict[bytes, tuple[int, bytes]]:
    rows = zip(state.file_names(), ROW.iter_unpack(state.rows), strict=True)
    return {name: (row[4] & MODE_MASK, row[6]) for name, row in rows}


def _compare(old: Mapping[bytes, object], new: Mapping[bytes, object]) -> ChangeCounts:
    common = old.keys() & new.keys()
    return ChangeCounts(
        added=len(new) - len(common),
        modified=sum(old[name] != new[name] for name in common),
        removed=len(old) - len(common),
    )


def _sum(one: ChangeCounts, other: ChangeCounts) -> ChangeCounts:
    return ChangeCounts(
        one.added + other.added, one.modified + other.modified, one.removed + other.removed
    )
