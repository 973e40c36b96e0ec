"""The record of an encrypted store: everything about an object is sealed, its name included.

    2 B  magic "HE"     finds the next record again behind a damaged one
    4 B  stored size    of the bytes that follow
    sealed, with the six bytes above as context:
      1 B  codec, 1 B  depth, 4 B  size, 32 B  digest, 32 B  base digest with codec 2, stored bytes

Names are digests of content, so a name in the open would let anyone who can read the pack confirm
a guess at what is in it. What remains to be seen is how long each compressed object is.
"""

from __future__ import annotations

import struct

from holdfast.adapters.local.encryption.cipher import OVERHEAD_BYTES, Cipher, NotAuthentic
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.domain.object_records import HEADER_BYTES, LARGEST_OBJECT, BadRecord, Record
from holdfast.values.compression import Codec

_HEADER = struct.Struct("<2sI")
_INNER = struct.Struct("<BBI32s")
_LONGER_BY = _HEADER.size + _INNER.size + OVERHEAD_BYTES - HEADER_BYTES


class SealedRecords:
    """See `holdfast.domain.object_records.RecordFormat`."""

    pack_magic = b"HFPACKE\n"
    magic = b"HE"
    header_bytes = _HEADER.size

    def __init__(self, cipher: Cipher) -> None:
        self._cipher = cipher

    def encode(self, record: Record) -> bytes:
        inner = _INNER.pack(record.codec, record.depth, record.size, record.digest)
        body = b"".join((inner, record.base or b"", record.stored))
        header = _HEADER.pack(self.magic, len(body) + OVERHEAD_BYTES)
        return header + self._cipher.seal(body, header)

    def stored_size_of(self, header: bytes) -> int:
        if len(header) < self.header_bytes or header[:2] != self.magic:
            raise BadRecord("no record starts here")
        stored_size: int = _HEADER.unpack_from(header)[1]
        if not OVERHEAD_BYTES + _INNER.size <= stored_size <= LARGEST_OBJECT:
            raise BadRecord("the record claims an impossible size")
        return stored_size

    def decode(self, data: bytes) -> Record:
        end = self.header_bytes + self.stored_size_of(data)
        if len(data) < end:
            raise BadRecord("the record is cut short")
        header = data[: self.header_bytes]
        try:
            body = self._cipher.open(data[self.header_bytes : end], header)
        except NotAuthentic as error:
            raise BadRecord(f"it is {error}") from None
        codec, depth, size, digest = _INNER.unpack_from(body)
        base: Digest | None = None
        stored = body[_INNER.size :]
        if codec == Codec.ZSTD_AGAINST_BASE:
            if len(stored) < DIGEST_BYTES:
                raise BadRecord("it names no base")
            base, stored = Digest(stored[:DIGEST_BYTES]), stored[DIGEST_BYTES:]
        try:
            return Record(Digest(digest), Codec(codec), depth, size, base, stored, _LONGER_BY)
        except ValueError:
            raise BadRecord("its codec is unknown") from None
