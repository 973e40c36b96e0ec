"""Reading file contents from a store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pytest

from holdfast.adapters.memory.objects import MemoryObjectStore
from holdfast.domain.errors import ObjectMissing
from holdfast.domain.ids import Digest
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import Piece, digest_of, encode_chunk_list
from holdfast.engine.stored_objects import read_content


class _CountingObjects(MemoryObjectStore):
    """Notes how many objects are read at once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def read_many(
        self, digests: Iterable[Digest], *, skip_unreadable: bool = False
    ) -> Iterator[tuple[Digest, bytes]]:
        wanted = list(digests)
        self.asked.append(len(wanted))
        # Not in the order in which they were named.
        yield from super().read_many(sorted(wanted), skip_unreadable=skip_unreadable)


def _chunked(objects: MemoryObjectStore, pieces: list[bytes]) -> FileEntry:
    chunks = encode_chunk_list([Piece(len(piece), digest_of(piece)) for piece in pieces])
    writer = objects.writer()
    for data in {*pieces, chunks}:
        writer.add(digest_of(data), data)
    writer.commit()
    whole = b"".join(pieces)
    return FileEntry(b"f", 0o644, len(whole), 0, digest_of(whole), chunks=digest_of(chunks))


@pytest.mark.requirement("PF-5")
def test_the_pieces_of_a_large_file_are_read_many_at_once_and_come_in_order() -> None:
    objects = _CountingObjects()
    pieces = [b"piece %d" % number for number in range(200)]
    pieces[100:100] = pieces[90:110]  # the same piece may occur twice
    entry = _chunked(objects, pieces)
    assert list(read_content(objects, entry)) == pieces
    assert max(objects.asked) == 8  # of at most 256 KiB each
    assert len(objects.asked) == 1 + math.ceil((len(pieces) - 2) / 8)  # the first two alone


@pytest.mark.requirement("PF-5")
def test_the_beginning_of_a_large_file_is_read_without_the_rest() -> None:
    objects = _CountingObjects()
    entry = _chunked(objects, [b"piece %d" % number for number in range(200)])
    assert next(read_content(objects, entry)) == b"piece 0"
    assert sum(objects.asked) <= 2


def test_a_missing_piece_of_a_large_file_is_an_error() -> None:
    objects = _CountingObjects()
    pieces = [b"piece %d" % number for number in range(200)]
    entry = _chunked(objects, pieces)
    objects.forget([digest_of(pieces[150])])
    with pytest.raises(ObjectMissing):
        list(read_content(objects, entry))
