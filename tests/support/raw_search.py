"""Looking for bytes in the files of a store, with nothing of the product but the format's tables.

Every file is searched as it is. Packs are also taken apart: their records must follow each other
without a gap, and the content of each is searched too, unpacked.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from blake3 import blake3

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_MAGIC = b"HFPACK1\n"
_BLOCK = 3
_RECORD = struct.Struct("<2sBBIII32s")


def places_of(store: Path, needles: Iterable[bytes]) -> list[str]:
    """Each place where one of `needles` can still be read, in words."""
    found: list[str] = []
    needles = list(needles)
    assert needles
    for path in sorted(store.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            found += [f"{path.name}: {needle[:40]!r}" for needle in needles if needle in data]
    for digest, content in unpacked(store).items():
        found += [f"object {digest.hex()[:8]}: {n[:40]!r}" for n in needles if n in content]
    return found


def unpacked(store: Path) -> dict[bytes, bytes]:
    """Every object of every pack. A byte that belongs to no record fails the test."""
    records: dict[bytes, tuple[int, int, bytes]] = {}
    for pack in sorted((store / "objects/packs").iterdir()):
        data = pack.read_bytes()
        assert data[: len(_MAGIC)] == _MAGIC
        position = len(_MAGIC)
        while position < len(data):
            magic, codec, _, size, stored, _, digest = _RECORD.unpack_from(data, position)
            assert magic == b"HF", f"{pack.name}: no record at {position}"
            position += _RECORD.size
            body = data[position : position + stored]
            position += stored
            if codec == _BLOCK:
                assert blake3(body[5 : 5 + 36 * _count(body)]).digest() == digest
                for member, content in _members(body, size):
                    records[member] = (0, len(content), content)
            else:
                records[digest] = (codec, size, body)
        assert position == len(data)
    return {digest: _content(records, digest) for digest in records}


def _count(body: bytes) -> int:
    return int.from_bytes(body[1:5], "little")


def _members(body: bytes, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Codec, count, a digest and a size for each member, then the contents of all in one run."""
    behind = 5 + 36 * _count(body)
    contents = unpack(body[0], body[behind:], b"")
    assert len(contents) == size
    start = 0
    for at in range(5, behind, 36):
        length = int.from_bytes(body[at + 32 : at + 36], "little")
        yield body[at : at + 32], contents[start : start + length]
        start += length
    assert start == size


def _content(records: dict[bytes, tuple[int, int, bytes]], digest: bytes) -> bytes:
    codec, size, stored = records[digest]
    base = _content(records, stored[:32]) if codec == 2 else b""
    data = unpack(codec, stored, base)
    assert len(data) == size
    assert blake3(data).digest() == digest
    return data


def unpack(codec: int, stored: bytes, base: bytes) -> bytes:
    """The content of a record's stored bytes; with codec 2 they begin with a digest."""
    if codec == 0:
        return stored
    if codec == 1:
        return zstd.decompress(stored)
    prefix = zstd.ZstdDict(base, is_raw=True).as_prefix
    return zstd.decompress(stored[32:], zstd_dict=prefix)
