"""The names in a git index: which paths a repository tracks, read without git.

    header → entries (62 or 74 bytes, then the name) → extensions → checksum

Only names are read, because this runs whenever the index has changed: about 6 ms for 10,000 names.
Guarantee: an invalid or incomplete index is refused, never read in part.
"""

from __future__ import annotations

from bisect import bisect_left

from holdfast.values.classes import dataclass

_HEADER_BYTES = 12
_MODE_AT = 26
_GITLINK = 0xE0
_EXTENDED = 0x40
_LONGEST = 0xFFF
_FIXED_BYTES = {20: 60, 32: 72}
"""The bytes before an entry's flags, by the length of an object name."""


class UnknownIndex(ValueError):
    """Not a git index, or an unsupported version."""


@dataclass(frozen=True, slots=True)
class TrackedNames:
    """Sorted paths, relative to the top of the repository. `links` are submodules. `shared` names
    the file that holds most paths of a split index."""

    names: tuple[bytes, ...] = ()
    links: frozenset[bytes] = frozenset()
    shared: bytes | None = None

    def holds(self, path: bytes) -> bool:
        at = bisect_left(self.names, path)
        return at < len(self.names) and self.names[at] == path

    def holds_below(self, directory: bytes) -> bool:
        start = directory + b"/" if directory else b""
        at = bisect_left(self.names, start)
        return at < len(self.names) and self.names[at].startswith(start)

    def joined(self, other: TrackedNames) -> TrackedNames:
        """The paths of both parts of a split index. Paths removed from the shared part remain until
        git rewrites it, so too much may be captured, never too little."""
        names = tuple(sorted({*self.names, *other.names}))
        return TrackedNames(names, self.links | other.links)


NOTHING_TRACKED = TrackedNames()


def read_tracked_names(data: bytes) -> TrackedNames:
    """Raises `UnknownIndex` if the bytes are damaged or not an index."""
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise UnknownIndex("it is not a git index of a supported version")
    for oid_bytes in _FIXED_BYTES:
        try:
            names, places, end = index_entries(data, version, oid_bytes)
            shared = _shared_part(data, end, oid_bytes)
        except (IndexError, ValueError):
            continue
        rows = zip(names, places, strict=True)
        links = frozenset(name for name, at in rows if data[at + _MODE_AT] == _GITLINK)
        # An entry that replaces one in the shared part has no name.
        return TrackedNames(tuple(sorted(filter(None, names))), links - {b""}, shared)
    raise UnknownIndex("it is damaged")


def index_entries(data: bytes, version: int, oid_bytes: int) -> tuple[list[bytes], list[int], int]:
    """The names, the offset of each entry, and the offset after the last one. `IndexError` or
    `ValueError` if the bytes are no entries, mostly because of object names of another length."""
    names: list[bytes] = []
    places: list[int] = []
    fixed = _FIXED_BYTES[oid_bytes]
    at, name = _HEADER_BYTES, b""
    for _ in range(int.from_bytes(data[8:12], "big")):
        flags_at = at + fixed
        flags, low = data[flags_at], data[flags_at + 1]
        name_at = flags_at + (4 if flags & _EXTENDED else 2)
        if version == 4:
            stripped, name_at = _read_varint(data, name_at)
            end = data.index(b"\0", name_at)
            name = name[: len(name) - stripped] + data[name_at:end]
            after = end + 1
        else:
            length = (flags << 8 | low) & _LONGEST
            end = name_at + length if length < _LONGEST else data.index(b"\0", name_at)
            name = data[name_at:end]
            after = at + (end - at + 8 & ~7)
        if data[end]:
            raise ValueError("a path is not terminated")
        names.append(name)
        places.append(at)
        at = after
    if any(b"\0" in name for name in names):
        raise ValueError("a path contains a zero byte")
    return names, places, at


def _shared_part(data: bytes, at: int, oid_bytes: int) -> bytes | None:
    """The file that the extension `link` names. Extensions must end where the checksum begins,
    which proves that the entries were read correctly."""
    shared = None
    while at < len(data) - oid_bytes:
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        if data[at : at + 4] == b"link" and any(data[at + 8 : at + 8 + oid_bytes]):
            shared = b"sharedindex." + data[at + 8 : at + 8 + oid_bytes].hex().encode()
        at += 8 + size
    if at != len(data) - oid_bytes:
        raise ValueError("it has data after its end")
    return shared


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in a version 4 index, and the offset after it."""
    byte = data[at]
    value, at = byte & 0x7F, at + 1
    while byte & 0x80:
        byte = data[at]
        value, at = ((value + 1) << 7) | (byte & 0x7F), at + 1
    return value, at
