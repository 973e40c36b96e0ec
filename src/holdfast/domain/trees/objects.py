"""Object digests, and the chunk list of a large file.

The digest is BLAKE3-256. A chunk list:

    magic "HFC1" | u32 pieces | per piece: u32 size, 32 B digest
"""

from __future__ import annotations

import struct

from blake3 import blake3

from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest
from holdfast.values.classes import NamedTuple


def digest_of(data: bytes) -> Digest:
    return Digest(blake3(data).digest())


_HEADER = struct.Struct("<4sI")
_ROW = struct.Struct("<I32s")
_MAGIC = b"HFC1"


class Piece(NamedTuple):
    size: int
    digest: Digest


def encode_chunk_list(pieces: list[Piece]) -> bytes:
    return _HEADER.pack(_MAGIC, len(pieces)) + b"".join([_ROW.pack(*piece) for piece in pieces])


def decode_chunk_list(data: bytes) -> list[Piece]:
    if len(data) < _HEADER.size:
        raise ObjectDamaged("a list of chunks in the store is truncated")
    magic, count = _HEADER.unpack_from(data)
    if magic != _MAGIC or len(data) != _HEADER.size + count * _ROW.size:
        raise ObjectDamaged("a list of chunks in the store cannot be decoded")
    return [Piece(size, Digest(d)) for size, d in _ROW.iter_unpack(data[_HEADER.size :])]
