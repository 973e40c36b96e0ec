"""The raw pages of a SQLite file, newest image first, even if parts are damaged.

    database file + write-ahead log → for each page: its images, newest first
    page → cells → values

SQLite refuses a file at the first invalid byte, and treats a damaged frame as the end of the log.
Here every frame of the log's own generation counts, and a page is read cell by cell, so that damage
costs only the cells it hit. Not guaranteed: that a read value was ever written. The reader must
verify it with the row checksums.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

PAGE_BYTES = 4096
_WAL_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">6I")
_DATABASE_HEADER_BYTES = 100
_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_LARGEST_PAYLOAD = 64 << 20
_MOST_COLUMNS = 32
"""No table here has as many; random bytes claim any number."""
_MOST_TRUNKS = 100_000

Values: TypeAlias = tuple[Any, ...]


class Unreadable(ValueError):
    """These bytes are not a cell."""


@dataclass(slots=True)
class PageImages:
    """Every image of every page, newest first; `continued` pages were read as the rest of a cell.

    SQLite uses the first `usable_bytes` of each page. `newest_may_be_lost`: a missing image cannot
    be attributed.
    """

    images: dict[int, list[bytes]] = field(default_factory=dict)
    continued: set[int] = field(default_factory=set)
    usable_bytes: int = PAGE_BYTES
    newest_may_be_lost: bool = False

    def has_known_kind(self, number: int, image: bytes) -> bool:
        """Whether the page has a valid kind, and is really empty if it says so. Otherwise, finding
        no rows proves nothing."""
        start = _DATABASE_HEADER_BYTES if number == 1 else 0
        kind, _, count, content = struct.unpack_from(">BHHH", image, start)
        known = kind in (_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF)
        return bool(known and (count or content == self.usable_bytes))

    def newest(self, number: int) -> bytes:
        found = self.images.get(number)
        if not found:
            raise Unreadable(f"page {number} is missing")
        return found[0]

    def row_pages(self) -> Iterator[int]:
        """Pages that may hold rows, those of a known kind first. Most others hold the long texts of
        rows that were read by then."""
        free = self._free_pages()
        clear = {n for n in self.images if self.has_known_kind(n, self.newest(n))}
        yield from sorted(clear - free)
        yield from sorted(self.images.keys() - clear - free - self.continued)

    def _free_pages(self) -> set[int]:
        """Pages on the file's free list; any content left in them was deleted."""
        free: set[int] = set()
        try:
            trunk = int.from_bytes(self.newest(1)[32:36], "big")
            while trunk and trunk not in free and len(free) < _MOST_TRUNKS:
                free.add(trunk)
                page = self.newest(trunk)
                count = min(int.from_bytes(page[4:8], "big"), PAGE_BYTES // 4 - 2)
                free.update(struct.unpack_from(f">{count}I", page, 8))
                trunk = int.from_bytes(page[:4], "big")
        except Unreadable:
            pass
        return free


def page_images(database: bytes, log: bytes, *, usable_bytes: int = PAGE_BYTES) -> PageImages:
    found = PageImages(usable_bytes=usable_bytes)
    for number, start in enumerate(range(0, len(database), PAGE_BYTES), 1):
        found.images[number] = [database[start : start + PAGE_BYTES].ljust(PAGE_BYTES, b"\0")]
    for number, image in _frames(log):
        found.images.setdefault(number, []).insert(0, image)
    return found


def _frames(log: bytes) -> Iterator[tuple[int, bytes]]:
    """Frames up to the last commit. Frames of an older log generation have other salts."""
    size = _FRAME_HEADER.size + PAGE_BYTES
    frames = []
    for start in range(_WAL_HEADER.size, len(log) - size + 1, size):
        number, committed, salt1, salt2, _, _ = _FRAME_HEADER.unpack_from(log, start)
        image = log[start + _FRAME_HEADER.size : start + size]
        frames.append(((salt1, salt2), number, committed, image))
    if not frames:
        return
    salts = _salts(log, [frame[0] for frame in frames])
    current = []
    for position, frame in enumerate(frames):
        # One foreign salt between two current ones is a changed byte, not an older generation.
        following = frames[position + 1][0] if position + 1 < len(frames) else None
        if frame[0] != salts and following != salts:
            break
        current.append(frame)
    while current and not current[-1][2]:
        current.pop()
    yield from ((number, image) for _, number, _, image in current)


def _salts(log: bytes, seen: list[tuple[int, int]]) -> tuple[int, int]:
    """The salts in the log's header, unless no frame matches; then those of the first frame."""
    header: tuple[int, ...] = _WAL_HEADER.unpack_from(log)
    if (header[4], header[5]) in seen[:2]:
        return header[4], header[5]
    return seen[0]


def cells(pages: PageImages, number: int, image: bytes) -> Iterator[Values | Unreadable]:
    """The rows of a page; a rowid comes first, in place of its column."""
    start = _DATABASE_HEADER_BYTES if number == 1 else 0
    kind = image[start]
    if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
        return
    header = 12 if kind == _INDEX_INTERIOR else 8
    count = int.from_bytes(image[start + 3 : start + 5], "big")
    for position in range(min(count, PAGE_BYTES // 4)):
        pointer = start + header + 2 * position
        try:
            yield _cell(pages, image, kind, int.from_bytes(image[pointer : pointer + 2], "big"))
        except (Unreadable, struct.error, IndexError, UnicodeDecodeError) as error:
            yield Unreadable(f"page {number}, cell {position}: {error}")


def scattered_cells(pages: PageImages, image: bytes) -> Iterator[Values]:
    """Cells found by trying every offset, for a page whose cell table is damaged."""
    for offset in range(8, PAGE_BYTES - 4):
        for kind in (_TABLE_LEAF, _INDEX_LEAF):
            try:
                yield _cell(pages, image, kind, offset)
            except (Unreadable, struct.error, IndexError, UnicodeDecodeError):
                continue


def _cell(pages: PageImages, image: bytes, kind: int, offset: int) -> Values:
    if kind == _INDEX_INTERIOR:
        offset += 4
    size, offset = _varint(image, offset)
    rowid: tuple[int, ...] = ()
    if kind == _TABLE_LEAF:
        number, offset = _varint(image, offset)
        rowid = (number - (1 << 64) if number >> 63 else number,)
    if size > _LARGEST_PAYLOAD:
        raise Unreadable("an impossible size")
    values = _record(_payload(pages, image, offset, size, kind))
    if rowid and values and values[0] is None:
        return (*rowid, *values[1:])
    return values


def _payload(pages: PageImages, image: bytes, offset: int, size: int, kind: int) -> bytes:
    usable = pages.usable_bytes
    most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if size <= most:
        if offset + size > usable:
            raise Unreadable("it extends past the end of its page")
        return image[offset : offset + size]
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts = [image[offset : offset + local]]
    _require_length(parts[0], size)
    following = int.from_bytes(image[offset + local : offset + local + 4], "big")
    left = size - local
    while left > 0:
        page = pages.newest(following)
        pages.continued.add(following)
        parts.append(page[4 : min(4 + left, usable)])
        left -= usable - 4
        following = int.from_bytes(page[:4], "big")
    return b"".join(parts)


def _record(payload: bytes) -> Values:
    types, position = _require_length(payload, len(payload))
    values = []
    for serial in types:
        value, size = _value(payload, position, serial)
        values.append(value)
        position += size
    return tuple(values)


def _require_length(beginning: bytes, length: int) -> tuple[list[int], int]:
    """The types of a record and where its values begin, if they add up to this length."""
    header_size, position = _varint(beginning, 0)
    if not position <= header_size <= len(beginning):
        raise Unreadable("no record")
    types = []
    while position < header_size:
        serial, position = _varint(beginning, position)
        types.append(serial)
        if len(types) > _MOST_COLUMNS:
            raise Unreadable("too many columns")
    if header_size + sum(map(_size, types)) != length:
        raise Unreadable("a record of another length")
    return types, position


def _size(serial: int) -> int:
    if serial < 12:
        return (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[serial]
    return (serial - 12) // 2


def _value(payload: bytes, position: int, serial: int) -> tuple[Any, int]:
    if serial in (0, 8, 9):
        return (None if serial == 0 else serial - 8), 0
    if serial in (10, 11):
        raise Unreadable("a reserved type")
    if serial == 7:
        return struct.unpack_from(">d", payload, position)[0], 8
    size = _size(serial)
    data = payload[position : position + size]
    if len(data) != size:
        raise Unreadable("a value is truncated")
    if serial < 7:
        return int.from_bytes(data, "big", signed=True), size
    return (data if serial % 2 == 0 else data.decode()), size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[position]
        position += 1
        if count == 8:
            return value << 8 | byte, position
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, position
