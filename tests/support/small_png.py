"""Pictures of a page as small PNG files: at most 256 colours, which a picture of text hardly shows.

undo the filters of each row → count the colours → the most frequent ones become the palette
→ each other colour becomes the nearest of them → one byte a pixel, compressed
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGB = 2
_PALETTE = 3
_MOST_COLOURS = 256
_FREQUENT = 96

Colour = tuple[int, int, int]


def small_png(picture: bytes) -> bytes:
    """The same picture with a palette. It takes what Chromium makes: 8 bits, RGB, one pass."""
    parts = dict[bytes, bytes]()
    for name, data in _chunks(picture):
        parts[name] = parts.get(name, b"") + data
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    if (depth, kind, interlaced) != (8, _RGB, 0):
        raise ValueError(f"not such a picture: {depth} bits, kind {kind}")
    rows = list(_rows(zlib.decompress(parts[b"IDAT"]), width * 3, height))
    counted = Counter(pixel for row in rows for pixel in _pixels(row))
    palette = _palette(counted)
    places = {colour: _nearest(palette, colour) for colour in counted}
    pixels = b"".join(b"\0" + bytes(places[one] for one in _pixels(row)) for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)
    chunks = (
        (b"IHDR", head),
        (b"PLTE", bytes(part for colour in palette for part in colour)),
        (b"IDAT", zlib.compress(pixels, 9)),
        (b"IEND", b""),
    )
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(picture):
        length, name = struct.unpack_from(">I4s", picture, at)
        yield name, picture[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data)
    return struct.pack(">I4s", len(data), name) + data + struct.pack(">I", check)


def _rows(data: bytes, width_bytes: int, height: int) -> Iterator[bytes]:
    """Each row without its filter, as the format describes them."""
    above = bytearray(width_bytes)
    for number in range(height):
        start = number * (width_bytes + 1)
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + width_bytes])
        for at in range(width_bytes if kind else 0):
            left = row[at - 3] if at >= 3 else 0
            up, corner = above[at], above[at - 3] if at >= 3 else 0
            row[at] = (row[at] + _predicted(kind, left, up, corner)) & 0xFF
        yield bytes(row)
        above = row


def _pixels(row: bytes) -> Iterator[Colour]:
    return zip(row[0::3], row[1::3], row[2::3], strict=True)


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 2:
        return up
    if kind == 3:
        return (left + up) // 2
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


def _palette(counted: Counter[Colour]) -> list[Colour]:
    ordered = [colour for colour, _ in counted.most_common()]
    groups = dict[Colour, Colour]()
    for red, green, blue in ordered:
        groups.setdefault((red >> 4, green >> 4, blue >> 4), (red, green, blue))
    frequent = ordered[:_FREQUENT]
    return list(dict.fromkeys([*frequent, *groups.values(), *ordered]))[:_MOST_COLOURS]


def _nearest(palette: list[Colour], colour: Colour) -> int:
    distances = [sum((a - b) ** 2 for a, b in zip(one, colour, strict=True)) for one in palette]
    return distances.index(min(distances))
