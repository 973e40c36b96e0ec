"""The versions of one file along a line of checkpoints, even if it was renamed.

The line is that of a session, or of the workspace, newest first: saved and restored states of all
sessions in log order, with the safety checkpoints of restores (`WorkspaceStates`).

For each checkpoint, only the trees on the way to the file are loaded, each once. If a checkpoint
does not have the file, a file that is gone in the next one replaces it: one with the same content,
or else the most similar one that shares half of its lines.

Guarantee: versions that are too large or damaged are skipped and reported. Not guaranteed: that a
file that was renamed and rewritten in one step is recognised.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, short
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.paths import basename, to_text
from holdfast.domain.restore.selections import selection_of
from holdfast.domain.trees.changes import ChangeType, tree_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.engine.history.history import MOVING_KINDS
from holdfast.engine.stored_objects import list_files, read_content
from holdfast.engine.vault import Vault

_CHUNK = 200
LARGEST_BYTES = 16 * 1024 * 1024
"""The limit for a file whose lines are explained: some 200 MB of memory."""

_SNIFFED_BYTES = 8_000
_MOST_KNOWN = 4_096
_MOST_CANDIDATES = 50
_SAME_LINES = 0.5
_NOW = 1 << 62


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file in a checkpoint; None for the current file."""

    path: bytes
    content: Digest
    checkpoint: Checkpoint | None = None
    entry: FileEntry | None = None

    @property
    def sequence(self) -> int:
        return _NOW if self.checkpoint is None else self.checkpoint.sequence

    @property
    def key(self) -> tuple[object, ...]:
        return ("" if self.checkpoint is None else self.checkpoint.id, self.path)


def text_lines(data: bytes) -> list[bytes] | None:
    """Lines without their ends; None for binary content."""
    if b"\0" in data[:_SNIFFED_BYTES]:
        return None
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


class FileVersions:
    """The versions of a file, for a walk through its history."""

    def __init__(
        self,
        vault: Vault,
        newest: FileVersion,
        lines: list[bytes],
        head: Checkpoint | None,
        line: WorkspaceStates | None = None,
    ) -> None:
        """The walk begins at `newest`; a workspace file follows `head`. With a `line`, it goes
        through the states of the workspace, otherwise through those of a session."""
        self._vault = vault
        self._line = line
        self._present = lines
        self._head = head
        self._known: dict[tuple[Digest, bytes], Entry | None] = {}
        self._read: dict[Digest, list[bytes] | None] = {newest.content: lines}
        self.warnings: list[str] = []

    def at(self, checkpoint: Checkpoint, path: bytes) -> FileVersion | None:
        entry = self.entry(checkpoint.tree, path)
        if not isinstance(entry, FileEntry):
            return None
        return FileVersion(path, entry.digest, checkpoint, entry)

    def parents(self, version: FileVersion) -> Sequence[FileVersion]:
        """The file's previous versions: in the parent and, for a record of a restore of some paths,
        also in the restored checkpoint."""
        older = [self.parent_of(version)]
        record = version.checkpoint
        if record is not None and record.restores_from and selection_of(record) is not None:
            within = None if self._line is not None else record.session_id
            older.append(self._vault.catalog.checkpoint(within, record.restores_from))
        found = [self._located(one, version) for one in older if one is not None]
        return [one for one in found if one is not None]

    def parent_of(self, version: FileVersion) -> Checkpoint | None:
        at = version.checkpoint
        if at is None:
            return self._head
        if self._line is not None:
            return self._line.before(at)
        return self._vault.catalog.checkpoint(at.session_id, at.parent)

    def lines(self, version: FileVersion) -> list[bytes] | None:
        """None if they are unavailable; empty for a binary version."""
        if version.entry is None:
            return self._present
        if version.content not in self._read:
            while len(self._read) > 1:
                del self._read[next(iter(self._read))]
            self._read[version.content] = self._stored(version, version.entry)
        return self._read[version.content]

    def _stored(self, version: FileVersion, entry: FileEntry) -> list[bytes] | None:
        assert version.checkpoint is not None
        where = f"{to_text(version.path)!r} in {short(version.checkpoint.id)}"
        if entry.size > LARGEST_BYTES:
            self._warn(f"{where} is too large: {entry.size:,} bytes")
            return None
        try:
            data = b"".join(read_content(self._vault.objects, entry))
        except StoreDamaged as error:
            self._warn(f"{where} cannot be read: {error.message}")
            return None
        return text_lines(data) or []

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def entry(self, tree: Digest, path: bytes) -> Entry | None:
        """A tree's entry at a path; trees on the way are cached."""
        if (tree, path) in self._known:
            return self._known[tree, path]
        name, _, rest = path.partition(b"/")
        found = self._vault.load_tree(tree).by_name.get(name)
        if rest:
            below = isinstance(found, DirectoryEntry)
            found = self.entry(found.digest, rest) if below else None  # type: ignore[union-attr]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[tree, path] = found
        return found

    def _located(self, older: Checkpoint, version: FileVersion) -> FileVersion | None:
        there = self.at(older, version.path)
        if there is not None or not self._size(version):
            return there
        gone = [one for one in self._gone(older, version) if one[1].size]
        same = [one for one in gone if one[1].digest == version.content]
        if same:
            path, entry = max(same, key=lambda one: basename(one[0]) == basename(version.path))
        else:
            similar = self._most_similar(older, gone, version)
            if similar is None:
                return None
            path, entry = similar
        return FileVersion(path, entry.digest, older, entry)

    def _gone(self, older: Checkpoint, version: FileVersion) -> Iterator[tuple[bytes, FileEntry]]:
        """Files of a checkpoint that are gone in the newer one."""
        if version.checkpoint is not None:
            for change in tree_changes(self._vault.load_tree, older.tree, version.checkpoint.tree):
                if change.type is ChangeType.REMOVED and isinstance(change.old, FileEntry):
                    yield change.path, change.old
            return
        root, size = os.fsencode(self._vault.workspace), self._size(version)
        for path, entry in list_files(self._vault.load_tree, older.tree):
            alike = entry.digest == version.content or size <= entry.size * 2 <= size * 4
            if alike and not os.path.lexists(os.path.join(root, path)):
                yield path, entry

    def _size(self, version: FileVersion) -> int:
        if version.entry is not None:
            return version.entry.size
        return sum(len(line) + 1 for line in self._present)

    def _most_similar(
        self, older: Checkpoint, gone: list[tuple[bytes, FileEntry]], version: FileVersion
    ) -> tuple[bytes, FileEntry] | None:
        size = self._size(version)
        close = [one for one in gone if size <= one[1].size * 2 <= size * 4]
        close.sort(key=lambda one: (basename(one[0]) != basename(version.path), one[0]))
        mine = Counter(self.lines(version) or ())
        best: tuple[float, bytes, FileEntry] | None = None
        for path, entry in close[:_MOST_CANDIDATES]:
            if entry.size > LARGEST_BYTES or not mine:
                continue
            theirs = Counter(self.lines(FileVersion(path, entry.digest, older, entry)) or ())
            share = (mine & theirs).total() / max(mine.total(), theirs.total())
            if share >= _SAME_LINES and (best is None or share > best[0]):
                best = (share, path, entry)
        return None if best is None else best[1:]


class WorkspaceStates:
    """Finds the state before a checkpoint; reads the log only as far as needed."""

    def __init__(self, vault: Vault) -> None:
        self._catalog = vault.catalog
        self._states = self._newest_first()
        self._seen: list[Checkpoint] = []
        self._places: dict[CheckpointId, int] = {}

    def newest(self) -> Checkpoint | None:
        return self._at(0)

    def before(self, checkpoint: Checkpoint) -> Checkpoint | None:
        """The workspace's previous state; for a restore, its target."""
        target = checkpoint.restores_from if checkpoint.kind is Kind.RESTORE else None
        if target is not None and selection_of(checkpoint) is None:
            return self._catalog.checkpoint(None, target)
        while checkpoint.id not in self._places:
            if self._at(len(self._seen)) is None:
                return self._catalog.checkpoint(None, checkpoint.parent)
        return self._at(self._places[checkpoint.id] + 1)

    def _at(self, place: int) -> Checkpoint | None:
        while len(self._seen) <= place:
            state = next(self._states, None)
            if state is None:
                return None
            self._places.setdefault(state.id, len(self._seen))
            self._seen.append(state)
        return self._seen[place]

    def _newest_first(self) -> Iterator[Checkpoint]:
        before: int | None = None
        while chunk := self._catalog.operations_before(before, _CHUNK, kinds=MOVING_KINDS):
            for operation in chunk:
                yield from self._states_of(operation)
            before = chunk[-1].sequence

    def _states_of(self, operation: Operation) -> Iterator[Checkpoint]:
        made = operation.checkpoint and self._catalog.checkpoint(None, operation.checkpoint)
        if made and (
            operation.kind is not OperationKind.CHECKPOINT or made.kind is not Kind.SAFETY
        ):
            yield made
        safety = operation.safety and self._catalog.checkpoint(None, operation.safety)
        if safety:
            yield safety
