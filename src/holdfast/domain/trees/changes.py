"""Differences between two trees, and a tree with some paths replaced.

Equal subtrees and equal rows are skipped, and renames are found by content. Replacing paths encodes
only the directories above them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

from holdfast.domain.ids import Digest
from holdfast.domain.paths import basename, join, to_text
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import EMPTY_TREE, Tree, encode_tree
from holdfast.domain.wording import printable
from holdfast.values.classes import dataclass, replace

TreeLoader: TypeAlias = Callable[[Digest], Tree]


class ChangeType(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs. `old_path` is set for renames only."""

    path: bytes
    type: ChangeType
    old: Entry | None
    new: Entry | None
    old_path: bytes | None = None

    @property
    def is_directory(self) -> bool:
        return all(e is None or isinstance(e, DirectoryEntry) for e in (self.old, self.new))

    @property
    def modes(self) -> tuple[int, int] | None:
        """The old and the new mode, if they differ."""
        old, new = self.old, self.new
        if isinstance(old, SymlinkEntry | None) or isinstance(new, SymlinkEntry | None):
            return None
        return (old.mode, new.mode) if old.mode != new.mode else None


def tree_changes(load: TreeLoader, old: Digest | None, new: Digest | None) -> Iterator[Change]:
    """Every path that differs, in path order, directories before their content."""
    if old == new:
        return
    old_tree = EMPTY_TREE if old is None else load(old)
    new_tree = EMPTY_TREE if new is None else load(new)
    yield from _changes(load, old_tree, new_tree, b"")


def _changes(load: TreeLoader, old: Tree, new: Tree, directory: bytes) -> Iterator[Change]:
    old_rows, new_rows = old.rows, new.rows
    differing = [name for name, row in new_rows.items() if old_rows.get(name) != row]
    differing += old_rows.keys() - new_rows.keys()
    for name in sorted(differing):
        before, after = old.entry(name), new.entry(name)
        path = join(directory, name)
        if before is None or not before.same_state(after):
            yield Change(path, _type_of(before, after), before, after)
        before_digest = before.digest if isinstance(before, DirectoryEntry) else None
        after_digest = after.digest if isinstance(after, DirectoryEntry) else None
        if before_digest != after_digest:
            yield from _changes(
                load,
                EMPTY_TREE if before_digest is None else load(before_digest),
                EMPTY_TREE if after_digest is None else load(after_digest),
                path,
            )


def _type_of(before: Entry | None, after: Entry | None) -> ChangeType:
    if before is None:
        return ChangeType.ADDED
    return ChangeType.REMOVED if after is None else ChangeType.MODIFIED


def with_renames(changes: Iterable[Change]) -> list[Change]:
    """Pair each added file with a removed one of the same content; empty files are not paired."""
    changes = list(changes)
    removed: defaultdict[Digest, list[Change]] = defaultdict(list)
    for change in changes:
        if (
            change.type is ChangeType.REMOVED
            and isinstance(change.old, FileEntry)
            and change.old.size
        ):
            removed[change.old.digest].append(change)
    moved_away: set[bytes] = set()
    paired: dict[bytes, Change] = {}
    for change in changes:
        if change.type is not ChangeType.ADDED or not isinstance(change.new, FileEntry):
            continue
        if candidates := removed.get(change.new.digest):
            source = max(candidates, key=lambda c: basename(c.path) == basename(change.path))
            candidates.remove(source)
            moved_away.add(source.path)
            paired[change.path] = Change(
                change.path, ChangeType.RENAMED, source.old, change.new, source.path
            )
    return [paired.get(c.path, c) for c in changes if c.path not in moved_away]


_NAMED = 3


def describe_changes(changes: Iterable[Change]) -> str:
    """The changed files in one line: `Changed a.py; added b.py, c.py, d.py and 4 more`."""
    verbs = {
        ChangeType.MODIFIED: "changed",
        ChangeType.ADDED: "added",
        ChangeType.REMOVED: "removed",
        ChangeType.RENAMED: "renamed",
    }
    files: dict[ChangeType, list[str]] = {kind: [] for kind in verbs}
    for change in changes:
        if not change.is_directory:
            files[change.type].append(printable(to_text(change.path)))
    parts = []
    for kind, verb in verbs.items():
        more = len(files[kind]) - _NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        if files[kind]:
            parts.append(f"{verb} {', '.join(files[kind][:_NAMED])}{rest}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def visible_changes(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes that people count: files and links, and directories without listed content."""
    changes = list(changes)
    for index, change in enumerate(changes):
        if not change.is_directory:
            yield change
            continue
        follower = changes[index + 1].path if index + 1 < len(changes) else b""
        if not follower.startswith(change.path + b"/"):
            yield change


_NEW_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class NewMode:
    """The same file or directory with another mode. No effect if it does not exist."""

    mode: int


Replacement: TypeAlias = Entry | NewMode | None
"""The new entry of a path; a directory includes everything below it, None removes it."""


def replace_entries(
    load: TreeLoader, root: Digest, changes: Mapping[bytes, Replacement]
) -> tuple[Digest, dict[Digest, bytes]]:
    """The digest of the changed tree, and the newly encoded directories."""
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
