"""Pack files: records one after the other, append-only, sealed at a size.

    packs/00000007.pack = "HFPACK1\\n" | record | record | …

One fsync makes a whole save durable, because it went into one file whose name was already durable.
Bytes after the last committed record are an unfinished save. They are never truncated, because
after a power cut the index may know less than the pack; they are read again and indexed. A pack
with a torn end is left as it is, and the next save starts a new one.

**Blocks.** Small objects share one record, because together they compress faster and better.

    stored bytes = 1 B codec | 4 B count | per member: 32 B digest, 4 B size | contents

The member table is not compressed, so that an index can be rebuilt without opening the contents.
The block is named by the digest of its table, which lists the digests of everything in it. Each
member is verified by its own digest when it is read (I2).
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from holdfast.adapters.local.store_files import sync, sync_directory
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import BadRecord, PlainRecords, Record, RecordFormat
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.filesystem import FILE_MODE, Filesystem, write_all
from holdfast.values.compression import Codec, compress, decompress

if TYPE_CHECKING:
    from holdfast.adapters.local.store_errors import SyncFailures

LARGEST_MEMBER_BYTES = 16 << 10
FULL_AT_BYTES = 32 << 10
"""Reading one member opens the whole block, so blocks stay small: doubling the size gains 2%."""

_HEAD = struct.Struct("<BI")
_MEMBER = struct.Struct("<32sI")


def block_record(members: Sequence[tuple[Digest, bytes]]) -> Record:
    """One record for all members, in their order."""
    table = b"".join([_MEMBER.pack(digest, len(data)) for digest, data in members])
    contents = b"".join([data for _, data in members])
    codec, stored = compress(contents)
    head = _HEAD.pack(codec, len(members))
    return Record(
        Digest(digest_of(table)), Codec.BLOCK, 0, len(contents), None, head + table + stored
    )


def single_record(digest: Digest, data: bytes) -> Record:
    """An object on its own, compressed if that makes it smaller."""
    codec, stored = compress(data)
    return Record(digest, codec, 0, len(data), None, stored)


def record_of(objects: Sequence[tuple[Digest, bytes]]) -> Record:
    """One record for these small objects; a single one needs no block."""
    return single_record(*objects[0]) if len(objects) == 1 else block_record(objects)


def members_of(record: Record) -> list[tuple[Digest, int]]:
    """Digest and size of each member; `BadRecord` for an invalid table."""
    table = _table(record)
    members = cast("list[tuple[Digest, int]]", list(_MEMBER.iter_unpack(table)))
    if digest_of(table) != record.digest or sum([size for _, size in members]) != record.size:
        raise BadRecord("its table of members does not match its name")
    return members


def objects_in(record: Record) -> list[Digest]:
    """The objects in a record: the object itself, or the members of the block."""
    if record.codec is not Codec.BLOCK:
        return [record.digest]
    return [digest for digest, _ in members_of(record)]


def open_block(record: Record) -> dict[Digest, bytes]:
    """Every member's bytes, not yet verified against their digests; `ValueError` if damaged."""
    members = members_of(record)
    codec = Codec(record.stored[0])
    if codec not in (Codec.RAW, Codec.ZSTD):
        raise BadRecord("its content has an unknown kind")
    stored = record.stored[_HEAD.size + len(members) * _MEMBER.size :]
    contents = decompress(codec, stored, record.size, None)
    opened: dict[Digest, bytes] = {}
    start = 0
    for digest, size in members:
        opened[digest] = contents[start : start + size]
        start += size
    return opened


def _table(record: Record) -> bytes:
    if len(record.stored) < _HEAD.size:
        raise BadRecord("the block has no table")
    _, count = _HEAD.unpack_from(record.stored)
    table = record.stored[_HEAD.size : _HEAD.size + count * _MEMBER.size]
    if len(table) != count * _MEMBER.size:
        raise BadRecord("the table of the block is truncated")
    return table


PACK_MAGIC = PlainRecords.pack_magic
"""Packs of other record formats begin differently, with as many bytes."""

SEAL_AT_BYTES = 64 << 20
_WRITE_BUFFER_BYTES = 1 << 20
_SCAN_BYTES = 1 << 20
_PACK_NAME = re.compile(r"([0-9]{8})\.pack")


def pack_name(number: int) -> str:
    return f"{number:08d}.pack"


class PackDirectory:
    """Reads and lists packs; the only place that knows their names."""

    def __init__(
        self,
        fs: Filesystem,
        directory: Path,
        records: RecordFormat | None = None,
        sync_failures: SyncFailures | None = None,
    ) -> None:
        self._fs = fs
        self.directory = directory
        self._where = os.fsencode(directory)
        self.records = records or PlainRecords()
        self.sync_failures = sync_failures
        self._open: dict[int, int] = {}

    def path(self, number: int) -> bytes:
        return b"%s/%08d.pack" % (self._where, number)

    def numbers(self) -> list[int]:
        names = map(_PACK_NAME.fullmatch, os.listdir(self.directory))
        return sorted([int(name[1]) for name in names if name])

    def size_of(self, number: int) -> int:
        return self._fs.stat(self.path(number), follow_symlinks=False).st_size

    def read(self, number: int, offset: int, length: int) -> bytes:
        """Bytes of a pack; fewer than requested if it ends earlier."""
        parts: list[bytes] = []
        while length > 0:
            part = self._fs.pread(self._descriptor(number), length, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def scan(self, number: int, start: int) -> Iterator[tuple[int, Record | None, int]]:
        """Each record from `start` as (offset, record, end); damaged bytes as one None."""
        offset = max(start, len(PACK_MAGIC))
        size = self.size_of(number)
        while offset < size:
            record = self._record_at(number, offset, size)
            if record is not None:
                yield offset, record, offset + record.length
                offset += record.length
            else:
                resumed = self._next_record(number, offset + 1, size)
                yield offset, None, resumed
                offset = resumed

    def _record_at(self, number: int, offset: int, size: int) -> Record | None:
        records, behind = self.records, offset + self.records.header_bytes
        header = self.read(number, offset, records.header_bytes)
        try:
            stored_size = records.stored_size_of(header)
            if behind + stored_size > size:
                return None  # random bytes can claim any size, so nothing is read for them
            record = records.decode(header + self.read(number, behind, stored_size))
            objects_in(record)  # a block with an invalid table is not a sound record
            return record
        except BadRecord:
            return None

    def _next_record(self, number: int, offset: int, size: int) -> int:
        """Where the next sound record begins after damage, or the end of the pack."""
        magic = self.records.magic
        while offset < size:
            window = self.read(number, offset, _SCAN_BYTES)
            position = window.find(magic)
            while position >= 0:
                if self._record_at(number, offset + position, size) is not None:
                    return offset + position
                position = window.find(magic, position + 1)
            offset += max(len(window) - (len(magic) - 1), 1)
        return size

    def _descriptor(self, number: int) -> int:
        if number not in self._open:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._open[number] = self._fs.open(self.path(number), flags)
        return self._open[number]

    def sync(self, number: int) -> None:
        """Make a pack's content and name durable."""
        with self.syncing(number):
            sync(self._fs, self._descriptor(number))
            sync_directory(self._fs, os.fsencode(self.directory))

    def syncing(self, number: int) -> AbstractContextManager[None]:
        if self.sync_failures is None:
            return contextlib.nullcontext()
        return self.sync_failures.syncing(self.directory / pack_name(number))

    def begins_well(self, number: int) -> bool:
        return self.read(number, 0, len(PACK_MAGIC)) == self.records.pack_magic

    def begin_again(self, number: int) -> None:
        """Write the first bytes, the same in every pack. A power cut can take them from a new one
        and leave later ones. A file that begins differently, or has a second name, is foreign and
        is left alone."""
        if self.read(number, 0, len(PACK_MAGIC)).strip(b"\0"):
            return
        fd = self._fs.open(self.path(number), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if self._fs.fstat(fd).st_nlink == 1:
                write_all(self._fs, fd, self.records.pack_magic)
        finally:
            self._fs.close(fd)

    def remove(self, number: int) -> None:
        """Unlink a pack that the index no longer refers to."""
        if number in self._open:
            self._fs.close(self._open.pop(number))
        self._fs.unlink(self.path(number))

    def close(self) -> None:
        while self._open:
            self._fs.close(self._open.popitem()[1])


class PackAppender:
    """Adds records to one pack; buffered, durable after `sync`."""

    def __init__(self, fs: Filesystem, packs: PackDirectory, number: int, *, create: bool) -> None:
        self._fs = fs
        self._packs = packs
        self.number = number
        self._buffer = bytearray()
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        self._fd = fs.open(packs.path(number), flags, FILE_MODE)
        try:
            if create:
                write_all(fs, self._fd, packs.records.pack_magic)
                with packs.syncing(number):
                    sync_directory(fs, os.fsencode(packs.directory))
            self.start = fs.fstat(self._fd).st_size
        except BaseException:
            fs.close(self._fd)
            raise
        self.end = self.start

    def append(self, encoded: bytes) -> int:
        """Returns the offset of the record."""
        offset = self.end
        self._buffer += encoded
        self.end += len(encoded)
        if len(self._buffer) >= _WRITE_BUFFER_BYTES:
            self._flush()
        return offset

    def sync(self) -> None:
        self._flush()
        with self._packs.syncing(self.number):
            sync(self._fs, self._fd)

    def forget(self) -> None:
        """Truncate what this appender wrote; nothing refers to it."""
        self._buffer.clear()
        self._fs.ftruncate(self._fd, self.start)
        self.end = self.start

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._fs.close(fd)

    def _flush(self) -> None:
        if self._buffer:
            write_all(self._fs, self._fd, bytes(self._buffer))
            self._buffer.clear()
