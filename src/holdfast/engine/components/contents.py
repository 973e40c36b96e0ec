"""What components give and get back: streams of bytes, stored like the content of files."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from holdfast.domain.component_states import MOST_CONTENTS, ComponentState, StoredContent
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import from_text
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.wording import size_words
from holdfast.engine.scan.file_capture import FormerPieces, store_content
from holdfast.engine.stored_objects import read_content
from holdfast.ports.component import ComponentProblem
from holdfast.ports.objects import ObjectStore, ObjectWriter, WriteTotals
from holdfast.ports.progress import TransferProgress

_BLOCK_BYTES = 4 << 20
_LONGEST_NAME = 1000


class StoreSink:
    """Takes contents through one writer, up to a limit. Once closed it refuses everything: a call
    that was given up may still be running."""

    def __init__(
        self,
        objects: ObjectStore,
        *,
        limit_bytes: int,
        store_limit: int | None,
        progress: TransferProgress,
        previous: ComponentState | None = None,
    ) -> None:
        """Contents of the same name in `previous` are likely to resemble the new ones."""
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
        blocks = self._measured(_in_blocks(pieces))
        captured = store_content(
            _Adding(self), blocks, similar_to=similar_to, former=self._former(known)
        )
        self._contents[name] = StoredContent(name, captured.digest, captured.chunks, captured.size)

    def keep(self, name: str, content: StoredContent) -> None:
        before = () if self._previous is None else self._previous.contents
        if not any(_same_bytes(content, known) for known in before):
            raise ComponentProblem(f"the state before has no content like {name!r:.80}")
        self._require_new(name)
        self._contents[name] = StoredContent(name, content.digest, content.chunks, content.size)

    @property
    def contents(self) -> tuple[StoredContent, ...]:
        return tuple(sorted(self._contents.values(), key=lambda content: content.name))

    def _require_new(self, name: str) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise ComponentProblem(f"{name!r:.80} cannot name a content")
        if name in self._contents or len(self._contents) >= MOST_CONTENTS:
            raise ComponentProblem(f"it gave the content {name!r:.80} twice, or too many of them")

    def _former(self, before: StoredContent | None) -> FormerPieces | None:
        if before is None or before.chunks is None:
            return None
        try:
            return FormerPieces(decode_chunk_list(self._objects.read(before.chunks)))
        except StoreDamaged:
            return None  # stored whole, then

    def _measured(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._taken_bytes += len(block)
            if self._taken_bytes > self._limit_bytes:
                raise ComponentProblem(
                    f"it gave more than {size_words(self._limit_bytes)}; "
                    f"raise component_max_size if that is right"
                )
            self._progress.transferred(self._taken_bytes)
            yield block

    def add_object(self, digest: Digest, data: bytes, similar_to: Digest | None) -> bool:
        with self._lock:
            if self._closed:
                raise ComponentProblem("it was given up")
            if self._writer is None:
                self._writer = self._objects.writer(limit_bytes=self._store_limit)
            return self._writer.add(digest, data, similar_to=similar_to)

    def close(self) -> ObjectWriter | None:
        """Take nothing more; the batch, if there is one, is the caller's."""
        with self._lock:
            self._closed = True
            return self._writer


class _Adding:
    """A sink as the writer of one content: its batch is ended by others."""

    def __init__(self, sink: StoreSink) -> None:
        self._sink = sink

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        return self._sink.add_object(digest, data, similar_to)

    def commit(self) -> WriteTotals:
        return WriteTotals()

    def abandon(self) -> None:
        return None


class NoSink:
    """For a look at the state that nobody keeps: contents are read and forgotten."""

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        return None

    def keep(self, name: str, content: StoredContent) -> None:
        return None


class StoreSource:
    """The contents of one state, read back and proven."""

    def __init__(
        self, objects: ObjectStore, state: ComponentState, progress: TransferProgress
    ) -> None:
        self._objects = objects
        self._state = state
        self._progress = progress
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
        """Give nothing more: a call that was given up may still be running."""
        self._ended = True

    def _measured(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if self._ended:
                raise ComponentProblem("it was given up")
            self._given_bytes += len(piece)
            self._progress.transferred(self._given_bytes)
            yield piece


def _same_bytes(one: StoredContent, other: StoredContent) -> bool:
    return (one.digest, one.chunks, one.size) == (other.digest, other.chunks, other.size)


def _in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of a size that is worth cutting."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        if not isinstance(piece, bytes):
            raise ComponentProblem(f"it gave {type(piece).__name__} instead of bytes")
        for start in range(0, len(piece), _BLOCK_BYTES):
            part = piece[start : start + _BLOCK_BYTES]
            waiting.append(part)
            size += len(part)
            if size >= _BLOCK_BYTES:
                yield b"".join(waiting)
                waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
