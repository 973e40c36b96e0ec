"""zstd, from the standard library if available, and the choice of how to store bytes.

Content similar to a stored object is compressed against it, which turns an edited file into a few
dozen bytes. Content that does not shrink is stored uncompressed.
"""

from __future__ import annotations

import sys
import threading
from enum import IntEnum

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 3
SMALLEST_WORTH_COMPRESSING = 48
_WORTH_IT = 0.97
"""Compressed content must be at least this much smaller, or reading it costs more than it saves."""

_CLEARLY_SIMILAR = 0.10
"""A result this small against a base needs no comparison with plain compression."""

_WORTH_A_BASE = 0.4
"""Content that differs more from its base is stored on its own, and can become a base itself."""

_SMALLEST_BASE_BYTES = 8
"""zstd accepts no shorter dictionary."""


class Codec(IntEnum):
    RAW = 0
    ZSTD = 1
    ZSTD_AGAINST_BASE = 2
    BLOCK = 3


class _Compressors(threading.local):
    """Creating a compressor takes longer than compressing a small file, so each thread keeps
    one."""

    def __init__(self) -> None:
        self.plain = zstd.ZstdCompressor(LEVEL)


_compressors = _Compressors()


def compress(data: bytes) -> tuple[Codec, bytes]:
    if len(data) < SMALLEST_WORTH_COMPRESSING:
        return Codec.RAW, data
    packed = _compressors.plain.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
    if len(packed) > len(data) * _WORTH_IT:
        return Codec.RAW, data
    return Codec.ZSTD, packed


def compress_against(data: bytes, base: bytes) -> tuple[Codec, bytes]:
    """The smallest form: against `base`, on its own, or uncompressed."""
    if len(base) < _SMALLEST_BASE_BYTES:
        return compress(data)
    dictionary = zstd.ZstdDict(base, is_raw=True)
    against = zstd.compress(data, LEVEL, zstd_dict=dictionary.as_prefix)
    if len(against) <= len(data) * _CLEARLY_SIMILAR:
        return Codec.ZSTD_AGAINST_BASE, against
    codec, alone = compress(data)
    if len(against) < len(alone) * _WORTH_A_BASE:
        return Codec.ZSTD_AGAINST_BASE, against
    return codec, alone


def decompress(codec: Codec, stored: bytes, size: int, base: bytes | None) -> bytes:
    """The original bytes; `ValueError` unless there are exactly `size` of them."""
    if codec is Codec.BLOCK:
        raise ValueError("a block is not an object of its own")
    if codec is Codec.RAW:
        data = stored
    else:
        prefix = None
        if codec is Codec.ZSTD_AGAINST_BASE:
            if base is None:
                raise ValueError("its base is missing")
            prefix = zstd.ZstdDict(base, is_raw=True).as_prefix
        decompressor = zstd.ZstdDecompressor(zstd_dict=prefix)
        try:
            # Asks for one byte more than expected, so that a wrong size is noticed without
            # inflating everything.
            data = decompressor.decompress(stored, max_length=size + 1)
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from None
        if not decompressor.eof or decompressor.unused_data:
            raise ValueError("the compressed data does not end where it should")
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes instead of {size}")
    return data
