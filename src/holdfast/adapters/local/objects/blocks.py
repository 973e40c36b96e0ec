"""Blocks: small objects that share one record, because together they shrink faster and further.

    stored bytes = 1 B codec | 4 B count | per member: 32 B digest, 4 B size | contents

The table of members is not compressed: an index can be rebuilt without opening the contents. The
block is named by the digest of its table, which names the digests of everything in it; each
member is proven by its own digest when it is read (I2).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import cast

from holdfast.domain.ids import Digest
from holdfast.domain.object_records import BadRecord, Record
from holdfast.domain.trees.objects import digest_of
from holdfast.values.compression import Codec, compress, decompress

LARGEST_MEMBER_BYTES = 16 << 10
FULL_AT_BYTES = 32 << 10
"""Reading one member opens the whole block, so blocks stay small: twice as much gains 2 %."""

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
    """An object on its own, compressed where that makes it smaller."""
    codec, stored = compress(data)
    return Record(digest, codec, 0, len(data), None, stored)


def record_of(objects: Sequence[tuple[Digest, bytes]]) -> Record:
    """One record for these small objects; one alone needs no block."""
    return single_record(*objects[0]) if len(objects) == 1 else block_record(objects)


def members_of(record: Record) -> list[tuple[Digest, int]]:
    """Digest and size of each member; `BadRecord` for a table that cannot be."""
    table = _table(record)
    members = cast("list[tuple[Digest, int]]", list(_MEMBER.iter_unpack(table)))
    if digest_of(table) != record.digest or sum([size for _, size in members]) != record.size:
        raise BadRecord("the table of its members does not match its name")
    return members


def objects_in(record: Record) -> list[Digest]:
    """What can be read from a record: the object that it is, or the members of the block."""
    if record.codec is not Codec.BLOCK:
        return [record.digest]
    return [digest for digest, _ in members_of(record)]


def open_block(record: Record) -> dict[Digest, bytes]:
    """Every member's bytes, not yet proven to match their digests; `ValueError` if damaged."""
    members = members_of(record)
    codec = Codec(record.stored[0])
    if codec not in (Codec.RAW, Codec.ZSTD):
        raise BadRecord("its contents are of an unknown kind")
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
        raise BadRecord("the table of the block is cut short")
    return table
