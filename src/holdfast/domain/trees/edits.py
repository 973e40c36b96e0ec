"""A tree with some paths replaced: the directories on the way are encoded anew, nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from holdfast.domain.ids import Digest
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import EMPTY_TREE, Tree, encode_tree
from holdfast.values.classes import dataclass, replace

_NEW_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class NewMode:
    """The same file or directory with another mode; nothing, where there is none by now."""

    mode: int


Replacement: TypeAlias = Entry | NewMode | None
"""What stands at a path from now on; a directory stands for all below it, None for nothing."""


def replace_entries(
    load: TreeLoader, root: Digest, changes: Mapping[bytes, Replacement]
) -> tuple[Digest, dict[Digest, bytes]]:
    """The digest of the changed tree, and the encoded directories that are new."""
    encoded: dict[Digest, bytes] = {}
    digest, _ = _edit(load, load(root), changes, encoded)
    return digest, encoded


def _edit(
    load: TreeLoader,
    tree: Tree,
    changes: Mapping[bytes, Replacement],
    encoded: dict[Digest, bytes],
) -> tuple[Digest, Tree]:
    entries: dict[bytes, Entry] = dict(tree.by_name)
    new_modes: dict[bytes, int] = {}
    below: defaultdict[bytes, dict[bytes, Replacement]] = defaultdict(dict)
    for path, entry in changes.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            below[name][rest] = entry
        elif isinstance(entry, NewMode):
            new_modes[name] = entry.mode
        elif entry is None:
            entries.pop(name, None)
        else:
            entries[name] = replace(entry, name=name)
    for name, deeper in below.items():
        old = entries.get(name)
        adds = any(e is not None and not isinstance(e, NewMode) for e in deeper.values())
        if not isinstance(old, DirectoryEntry) and not adds:
            continue
        subtree = load(old.digest) if isinstance(old, DirectoryEntry) else EMPTY_TREE
        digest, edited = _edit(load, subtree, deeper, encoded)
        mode = old.mode if isinstance(old, DirectoryEntry) else _NEW_DIRECTORY_MODE
        entries[name] = DirectoryEntry(name, mode, digest, edited.file_count, edited.size_bytes)
    for name, mode in new_modes.items():
        known = entries.get(name)
        if isinstance(known, (FileEntry, DirectoryEntry)):
            entries[name] = replace(known, mode=mode)
    ordered = [entries[name] for name in sorted(entries)]
    result = Tree(
        tuple(e for e in ordered if isinstance(e, FileEntry)),
        tuple(e for e in ordered if isinstance(e, DirectoryEntry)),
        tuple(e for e in ordered if isinstance(e, SymlinkEntry)),
    )
    data = encode_tree(result)
    digest = digest_of(data)
    encoded[digest] = data
    return digest, result
