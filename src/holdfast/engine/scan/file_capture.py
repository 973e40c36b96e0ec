"""Storing one file's content, whole or in chunks.

Files above a threshold are cut by content (FastCDC), so that an insertion moves no later border
and a small edit stores a small difference. Memory use is constant: one piece at a time.

A changed piece is stored as a difference to its counterpart in the earlier version:

    a piece that both versions have aligns the two
    → a new piece resembles the earlier version's piece at the same position
    → if both are about as long, they end at the same position as well
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, TypeVar

from blake3 import blake3

from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import Piece, digest_of, encode_chunk_list
from holdfast.engine.scan.stable_read import StableRead, read_stably, read_whole
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectWriter
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.engine.scan.scan_meter import ScanMeter

_ABOUT = 8
"""An eighth longer or shorter: what a few changed rows cause, and a moved cut does not."""


class FormerPieces:
    """The pieces of the earlier version. Called for each new piece in order, from the first."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._starts = [0, *accumulate(piece.size for piece in pieces)]
        self._numbers = {piece.digest: number for number, piece in enumerate(pieces)}
        self._at_bytes = 0
        self._shift_bytes = 0

    def counterpart(self, new: Piece) -> Digest | None:
        """The piece that this one resembles; None if it is unchanged, or beyond the end."""
        start = self._at_bytes
        self._at_bytes += new.size
        number = self._numbers.get(new.digest)
        if number is not None:
            self._shift_bytes = self._starts[number] - start
            return None
        middle = start + self._shift_bytes + new.size // 2
        number = bisect_right(self._starts, middle) - 1
        if not 0 <= number < len(self._pieces):
            return None
        former = self._pieces[number]
        if abs(new.size - former.size) * _ABOUT <= former.size:
            self._shift_bytes = self._starts[number + 1] - self._at_bytes
        return former.digest


CHUNK_ABOVE_BYTES = 1 << 20
_PIECE_AVERAGE_BYTES = 64 << 10
_PIECE_SMALLEST_BYTES = 16 << 10
_PIECE_LARGEST_BYTES = 256 << 10
_READ_BYTES = 4 << 20
_MOST_GROWTH_BYTES = 64 << 20
"""Reading stops after that much growth, because a log can grow as fast as it is read. What was
read is an earlier state of it. Like any file that grew, it counts as changed during the read."""
_SECTOR_BYTES = 512
_SPECIAL_KINDS = {
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}

T = TypeVar("T")


class NoRoom(Exception):
    """A file does not fit into the space that a save may use; none of it was stored."""


class CapturedContent(NamedTuple):
    """Where a file's content was stored."""

    digest: Digest
    chunks: Digest | None
    size: int


class FileCapture:
    """Stores content through one writer; `previous` hints at similar content. If it `reconsiders`,
    files that had no room in the last save are decided again."""

    reconsiders = False

    def __init__(
        self,
        fs: Filesystem,
        writer: ObjectWriter,
        started_ns: int,
        meter: ScanMeter | None = None,
    ) -> None:
        self._fs = fs
        self._writer = writer
        self._started_ns = started_ns
        self._meter = meter

    def capture(
        self, dir_fd: int, name: bytes, size: int, previous: Digest | None
    ) -> StableRead[CapturedContent]:
        if size > CHUNK_ABOVE_BYTES:
            return self._read(dir_fd, name, self._store_in_pieces)
        data, status, stable, has_writer, xattrs = self._read(dir_fd, name, self._read_small)
        if data is None:  # the file outgrew the threshold between stat and read
            return self._read(dir_fd, name, self._store_in_pieces)
        digest = digest_of(data)
        self._writer.add(digest, data, similar_to=previous)
        if self._meter is not None:
            self._meter.read(len(data))
        content = CapturedContent(digest, None, len(data))
        return StableRead(content, status, stable, has_writer, xattrs)

    def _read(self, dir_fd: int, name: bytes, consume: Callable[[int, int], T]) -> StableRead[T]:
        return read_stably(self._fs, dir_fd, name, consume, started_ns=self._started_ns)

    def _read_small(self, fd: int, size: int) -> bytes | None:
        return None if size > CHUNK_ABOVE_BYTES else read_whole(self._fs, fd, size)

    def _store_in_pieces(self, fd: int, size: int) -> CapturedContent:
        return _store_in_pieces(self._writer, self._blocks(fd, size + _MOST_GROWTH_BYTES))

    def _blocks(self, fd: int, most_bytes: int) -> Iterator[bytes]:
        while block := self._fs.read(fd, min(_READ_BYTES, most_bytes)):
            most_bytes -= len(block)
            if self._meter is not None:
                self._meter.read(len(block))
            yield block


def in_blocks(pieces: Iterable[bytes], block_bytes: int) -> Iterator[bytes]:
    """The same bytes in blocks that are large enough to cut."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        for start in range(0, len(piece), block_bytes):
            part = piece[start : start + block_bytes]
            waiting.append(part)
            size += len(part)
            if size >= block_bytes:
                yield b"".join(waiting)
                waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def store_content(
    writer: ObjectWriter,
    blocks: Iterable[bytes],
    *,
    similar_to: Digest | None = None,
    former: FormerPieces | None = None,
) -> CapturedContent:
    """The same for content from elsewhere than a file; `former` are the pieces of its earlier
    version, if that was large as well."""
    coming = iter(blocks)
    begin = b""
    for block in coming:
        begin += block
        if len(begin) > CHUNK_ABOVE_BYTES:
            return _store_in_pieces(writer, chain([begin], coming), former)
    digest = digest_of(begin)
    writer.add(digest, begin, similar_to=similar_to)
    return CapturedContent(digest, None, len(begin))


def _store_in_pieces(
    writer: ObjectWriter, blocks: Iterable[bytes], former: FormerPieces | None = None
) -> CapturedContent:
    from pyfastcdc import FastCDC  # imported late: only large files need it

    cutter = FastCDC(
        avg_size=_PIECE_AVERAGE_BYTES,
        min_size=_PIECE_SMALLEST_BYTES,
        max_size=_PIECE_LARGEST_BYTES,
    )
    whole = blake3(max_threads=blake3.AUTO)
    pieces: list[Piece] = []
    pending = b""
    total = 0
    for block in chain(blocks, [b""]):
        whole.update(block)
        total += len(block)
        buffer = pending + block
        if not buffer:
            break
        cuts = [bytes(chunk.data) for chunk in cutter.cut_buf(buffer)]
        # The last cut is only a border if the content ends there.
        pending = cuts.pop() if block else b""
        for data in cuts:
            piece = Piece(len(data), digest_of(data))
            similar_to = None if former is None else former.counterpart(piece)
            writer.add(piece.digest, data, similar_to=similar_to)
            pieces.append(piece)
    encoded = encode_chunk_list(pieces)
    list_digest = digest_of(encoded)
    writer.add(list_digest, encoded)
    return CapturedContent(Digest(whole.digest()), list_digest, total)


def is_sparse(status: os.stat_result) -> bool:
    """Whether the file has holes: fewer blocks than its size needs."""
    blocks: int = getattr(status, "st_blocks", -1)
    return 0 <= blocks * _SECTOR_BYTES < status.st_size and status.st_size > 4096


def special_kind(mode: int) -> str:
    """The kinds of files without content to capture."""
    return _SPECIAL_KINDS.get(stat.S_IFMT(mode), "unknown kind")
