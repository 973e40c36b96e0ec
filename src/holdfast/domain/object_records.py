"""The record: one object in a pack, self-describing, so that an index can be rebuilt from packs.

    2 B  magic "HF"     to find the next record after a damaged one
    1 B  codec          0 uncompressed, 1 zstd, 2 zstd against a base, 3 a block of small objects
    1 B  depth          how many bases have to be read first
    4 B  size           of the original bytes
    4 B  stored size    of the bytes that follow this header
    4 B  checksum       CRC-32 of the other header fields and of the stored bytes
   32 B  digest         the name: BLAKE3-256 of the original bytes, or of a block's table
   32 B  base digest    only with codec 2

The checksum finds damage without decompressing. The digest verifies content (I2) on every read.
"""

from __future__ import annotations

import struct
from binascii import crc32
from typing import Protocol

from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.values.classes import dataclass, field
from holdfast.values.compression import Codec

MAGIC = b"HF"
_HEADER = struct.Struct("<2sBBIII32s")
HEADER_BYTES = _HEADER.size
LARGEST_OBJECT = 1 << 30
DEEPEST_CHAIN = 16


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record header with its stored bytes."""

    digest: Digest
    codec: Codec
    depth: int
    size: int
    base: Digest | None
    stored: bytes
    seal_bytes: int = field(default=0, compare=False)
    """How many bytes another format adds."""

    @property
    def length(self) -> int:
        """The length of the whole record in its pack."""
        base_bytes = DIGEST_BYTES if self.base else 0
        return HEADER_BYTES + base_bytes + len(self.stored) + self.seal_bytes


class BadRecord(ValueError):
    """These bytes are not a whole, undamaged record."""


class RecordFormat(Protocol):
    """How records are encoded in the packs of one store."""

    @property
    def pack_magic(self) -> bytes:
        """The first eight bytes of every pack."""
        ...

    @property
    def magic(self) -> bytes:
        """The first bytes of every record."""
        ...

    @property
    def header_bytes(self) -> int: ...

    def encode(self, record: Record) -> bytes: ...

    def stored_size_of(self, header: bytes) -> int:
        """How many bytes follow this header; `BadRecord` if it is not a header."""
        ...

    def decode(self, data: bytes) -> Record:
        """The record at the start of `data`, which holds at least the whole record; `BadRecord`."""
        ...


def encode_record(record: Record) -> bytes:
    base = record.base or b""
    stored_size = len(base) + len(record.stored)
    fields = (MAGIC, record.codec, record.depth, record.size, stored_size)
    checksum = crc32(_HEADER.pack(*fields, 0, record.digest))
    checksum = crc32(record.stored, crc32(base, checksum))
    return _HEADER.pack(*fields, checksum, record.digest) + base + record.stored


def stored_size_of(header: bytes) -> int:
    """How many bytes follow this header; `BadRecord` if it is not a header."""
    if len(header) < HEADER_BYTES or header[:2] != MAGIC:
        raise BadRecord("no record starts here")
    stored_size: int = _HEADER.unpack_from(header)[4]
    if stored_size > LARGEST_OBJECT:
        raise BadRecord("the record claims an impossible size")
    return stored_size


def decode_record(data: bytes) -> Record:
    """The record at the start of `data`, which holds at least the whole record."""
    end = HEADER_BYTES + stored_size_of(data)
    if len(data) < end:
        raise BadRecord("the record is truncated")
    magic, codec, depth, size, stored_size, checksum, digest = _HEADER.unpack_from(data)
    body = data[HEADER_BYTES:end]
    expected = crc32(_HEADER.pack(magic, codec, depth, size, stored_size, 0, digest))
    if crc32(body, expected) != checksum:
        raise BadRecord("its checksum does not match")
    base: Digest | None = None
    if codec == Codec.ZSTD_AGAINST_BASE:
        if len(body) < DIGEST_BYTES:
            raise BadRecord("its base is missing")
        base, body = Digest(body[:DIGEST_BYTES]), body[DIGEST_BYTES:]
    try:
        return Record(Digest(digest), Codec(codec), depth, size, base, body)
    except ValueError:
        raise BadRecord("its codec is unknown") from None


class PlainRecords:
    """The record format described above, without encryption."""

    pack_magic = b"HFPACK1\n"
    magic = MAGIC
    header_bytes = HEADER_BYTES
    encode = staticmethod(encode_record)
    stored_size_of = staticmethod(stored_size_of)
    decode = staticmethod(decode_record)
