"""Component contents, stored like files, and scan results that components can reuse.

Components use scan results instead of asking the system again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from holdfast.domain.checkpoints import Checkpoint, Kind, SkipReason
from holdfast.domain.component_states import MOST_CONTENTS, ComponentState, StoredContent
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import from_text, join
from holdfast.domain.trees.changes import tree_changes
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.wording import size_words
from holdfast.engine.scan.directory_state import (
    BEING_WRITTEN,
    NUMBERS,
    UNSETTLED,
    DirectoryState,
)
from holdfast.engine.scan.file_capture import FormerPieces, in_blocks, store_content
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.scan.state_trees import changed_paths
from holdfast.engine.stored_objects import loader_for, read_content
from holdfast.engine.vault import Vault
from holdfast.ports.component import ComponentProblem, SeenDirectory, SeenFile
from holdfast.ports.objects import ObjectStore, ObjectWriter, WriteTotals
from holdfast.ports.progress import NoProgress, TransferProgress

_BLOCK_BYTES = 4 << 20
_LONGEST_NAME = 1000
_MOST_CHANGED = 2_000
_NO_CONTENT = (SkipReason.IGNORED, SkipReason.GIT_DATA, SkipReason.OWN_DATA)
"""Skipped files that do not matter to components. Files that git tracks are never ignored."""


class StoreSink:
    """Stores contents through one writer, up to a limit. Once closed, it refuses everything,
    because an abandoned call may still be running."""

    def __init__(
        self,
        objects: ObjectStore,
        *,
        limit_bytes: int,
        store_limit: int | None,
        progress: TransferProgress,
        previous: ComponentState | None = None,
    ) -> None:
        """Contents with the same name in `previous` probably resemble the new ones."""
        self._progress = progress
        self._objects = objects
        self._previous = previous
        self._limit_bytes = limit_bytes
        self._store_limit = store_limit
        self._writer: ObjectWriter | None = None
        self._taken_bytes = 0
        self._closed = False
        self._lock = threading.Lock()
        self._contents: dict[str, StoredContent] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        self._require_new(name)
        known = self._previous.content(name) if self._previous is not None else None
        similar_to = known.digest if known is not None and known.chunks is None else None
        blocks = self._measured(in_blocks(_checked(pieces), _BLOCK_BYTES))
        captured = store_content(
            _SinkWriter(self), blocks, similar_to=similar_to, former=self._former(known)
        )
        self._contents[name] = StoredContent(name, captured.digest, captured.chunks, captured.size)

    def keep(self, name: str, content: StoredContent) -> None:
        before = () if self._previous is None else self._previous.contents
        if not any(_same_bytes(content, known) for known in before):
            raise ComponentProblem(f"the previous state has no content {name!r:.80}")
        self._require_new(name)
        self._contents[name] = StoredContent(name, content.digest, content.chunks, content.size)

    @property
    def contents(self) -> tuple[StoredContent, ...]:
        return tuple(sorted(self._contents.values(), key=lambda content: content.name))

    def _require_new(self, name: str) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise ComponentProblem(f"{name!r:.80} is not a valid content name")
        if name in self._contents or len(self._contents) >= MOST_CONTENTS:
            raise ComponentProblem(
                f"it returned the content {name!r:.80} twice, or too many contents"
            )

    def _former(self, before: StoredContent | None) -> FormerPieces | None:
        if before is None or before.chunks is None:
            return None
        try:
            return FormerPieces(decode_chunk_list(self._objects.read(before.chunks)))
        except StoreDamaged:
            return None  # it was stored whole

    def _measured(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._taken_bytes += len(block)
            if self._taken_bytes > self._limit_bytes:
                raise ComponentProblem(
                    f"it produced more than {size_words(self._limit_bytes)}; raise "
                    "component_max_size if that is expected"
                )
            self._progress.transferred(self._taken_bytes)
            yield block

    def add_object(self, digest: Digest, data: bytes, similar_to: Digest | None) -> bool:
        with self._lock:
            if self._closed:
                raise ComponentProblem("it was cancelled")
            if self._writer is None:
                self._writer = self._objects.writer(limit_bytes=self._store_limit)
            return self._writer.add(digest, data, similar_to=similar_to)

    def close(self) -> ObjectWriter | None:
        """Accept nothing more; the caller ends the returned batch."""
        with self._lock:
            self._closed = True
            return self._writer


class _SinkWriter:
    """A sink as the writer of one content; the sink's owner ends the batch."""

    def __init__(self, sink: StoreSink) -> None:
        self._sink = sink

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        return self._sink.add_object(digest, data, similar_to)

    def commit(self) -> WriteTotals:
        return WriteTotals()

    def abandon(self) -> None:
        return None


class NoSink:
    """For a capture whose result is discarded: contents are read and not stored."""

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        return None

    def keep(self, name: str, content: StoredContent) -> None:
        return None


class StoreSource:
    """The contents of one state, verified as they are read."""

    def __init__(
        self,
        objects: ObjectStore,
        state: ComponentState,
        progress: TransferProgress | None = None,
    ) -> None:
        self._objects = objects
        self._state = state
        self._progress = progress or NoProgress()
        self._given_bytes = 0
        self._ended = False

    def read(self, name: str) -> Iterator[bytes]:
        content = self._state.content(name)
        if content is None:
            raise KeyError(name)
        entry = FileEntry(
            from_text(name), 0o600, content.size, 0, content.digest, chunks=content.chunks
        )
        return self._measured(read_content(self._objects, entry))

    def end(self) -> None:
        """Refuse further reads, because an abandoned call may still be running."""
        self._ended = True

    def _measured(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if self._ended:
                raise ComponentProblem("it was cancelled")
            self._given_bytes += len(piece)
            self._progress.transferred(self._given_bytes)
            yield piece


def _same_bytes(one: StoredContent, other: StoredContent) -> bool:
    return (one.digest, one.chunks, one.size) == (other.digest, other.chunks, other.size)


def _checked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if not isinstance(piece, bytes):
            raise ComponentProblem(f"it returned {type(piece).__name__} instead of bytes")
        yield piece


def changed_since(vault: Vault, before: Checkpoint | None, scan: Scan) -> list[bytes] | None:
    """Paths that differ from the files captured with the checkpoint's components, and paths that
    neither has. None if that is unknown, or if there are very many."""
    tree = None if before is None else _captured_with(vault, before)
    if tree is None:
        return None
    left_out = (
        s.path
        for s in scan.skipped
        if s.reason not in _NO_CONTENT and not s.reason.content_is_captured
    )
    found: list[bytes] = []
    try:
        for path in chain(left_out, _changed(vault, tree, scan)):
            found.append(path)
            if len(found) > _MOST_CHANGED:
                return None
    except StoreDamaged:
        return None
    return found


def _changed(vault: Vault, tree: Digest, scan: Scan) -> Iterable[bytes]:
    if scan.previous is not None and scan.previous.digest == tree:
        paths = changed_paths(scan.previous, scan.root)
        if paths is not None:
            return paths
    return (change.path for change in tree_changes(loader_for(vault, scan), tree, scan.tree))


def _captured_with(vault: Vault, checkpoint: Checkpoint) -> Digest | None:
    """The tree of files captured with the components. A restore record has its own files, and its
    unrestored components come from the safety checkpoint before it. None if the safety checkpoint
    was saved again with later changes, or if another operation came between."""
    if not checkpoint.kind.is_record:
        return checkpoint.tree
    if checkpoint.kind is not Kind.RESTORE or checkpoint.components is None:
        return None
    newest = vault.catalog.history(None, limit=3, records=True)
    kinds = [one.kind for one in newest]
    if kinds[:2] != [Kind.RESTORE, Kind.SAFETY] or kinds[2:] == [Kind.SAFETY]:
        return None
    record, safety = newest[:2]
    if record.id != checkpoint.id or record.components != safety.components:
        return None
    return safety.tree


def seen_directories(root: DirectoryState) -> Iterator[SeenDirectory]:
    waiting = [(b"", root)]
    while waiting:
        path, state = waiting.pop()
        if state.names:
            yield SeenDirectory(path, (state.names, state.rows), partial(_seen_files, state))
        for name, child in state.children.items():
            if isinstance(child, DirectoryState):  # otherwise, the scan did not visit it
                waiting.append((join(path, name), child))


def _seen_files(state: DirectoryState) -> dict[bytes, SeenFile]:
    rows = NUMBERS.iter_unpack(state.rows)
    return {
        name: SeenFile(*row[1:5])
        for name, row in zip(state.file_names(), rows, strict=True)
        if not row[5] & (UNSETTLED | BEING_WRITTEN)
    }
