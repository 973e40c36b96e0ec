"""What only shows when the whole tree is known: paths left out, and files with several names."""

from __future__ import annotations

from collections import defaultdict

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.paths import basename, join, parent
from holdfast.engine.scan.directory_state import MANY_NAMES, DirectoryState
from holdfast.values.tuples import NamedTuple


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
