"""The index of a repository, as far as it has to be understood without git: which paths it has,
with which content, and what it remembers of the file it saw.

    header → entries (62 or 64 bytes, then the name) → extensions, which are not needed

Versions 2 to 4 are read. A split or sparse index does not list every path; `whole` says so.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.domain.git_index import UnknownIndex, read_varint

GITLINK = 0o160000
_HEADER = struct.Struct(">4sII")
_STAT = struct.Struct(">10I")
_MODE_AT, _OID_AT = 24, 40
_EXTENDED = 0x4000
_ASSUME_VALID, _SKIP_WORKTREE = 0x8000, 0x40
_NAME_MASK = 0xFFF


class IndexChecksum:
    """Whether an index is what git has written: its last bytes are the digest of all before. Git
    itself does not look at them, and takes one that was cut short for another index."""

    def __init__(self, like: str | None) -> None:
        """`like` is the name of an object of the same repository, if there is any."""
        self._known = like is not None
        self._digest = hashlib.sha256() if like is not None and len(like) == 64 else hashlib.sha1()
        self._end = b""

    def through(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        length = self._digest.digest_size
        for block in blocks:
            whole = self._end + block
            self._digest.update(whole[:-length])
            self._end = whole[-length:]
            yield block

    @property
    def is_wrong(self) -> bool:
        """When all has passed; nothing but zeros is what `index.skipHash` leaves."""
        right = (self._digest.digest(), bytes(self._digest.digest_size))
        return self._known and self._end != b"" and self._end not in right


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """`stage` is 0 unless the path is in conflict. `unwatched`: git was told not to look at the
    file, or to leave it out of the working tree."""

    path: bytes
    mode: int
    oid: str
    stage: int
    mtime_ns: int
    size: int
    ctime_ns: int = 0
    unwatched: bool = False


def read_index(data: bytes, oid_bytes: int = 20) -> Iterator[IndexEntry]:
    """Entries in their order; `UnknownIndex` for what is no index or another version of it."""
    if len(data) < _HEADER.size:
        raise UnknownIndex("it is cut short")
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise UnknownIndex(f"it has version {version}")
    at, previous = _HEADER.size, b""
    try:
        for _ in range(count):
            entry, at = _entry(data, at, version, oid_bytes, previous)
            previous = entry.path
            yield entry
    except (struct.error, IndexError, ValueError):
        raise UnknownIndex("it is damaged") from None


def _entry(
    data: bytes, at: int, version: int, oid_bytes: int, previous: bytes
) -> tuple[IndexEntry, int]:
    numbers = _STAT.unpack_from(data, at)
    flags_at = at + _OID_AT + oid_bytes
    (flags,) = struct.unpack_from(">H", data, flags_at)
    name_at = flags_at + (4 if flags & _EXTENDED else 2)
    if version == 4:
        stripped, name_at = read_varint(data, name_at)
        end = data.index(b"\0", name_at)
        path = previous[: len(previous) - stripped] + data[name_at:end]
        after = end + 1
    else:
        length = flags & _NAME_MASK
        end = name_at + length if length < _NAME_MASK else data.index(b"\0", name_at)
        path = data[name_at:end]
        after = at + (end - at + 8) // 8 * 8
    if b"\0" in path:
        raise ValueError("a name holds a zero byte")  # object names of another length, as a rule
    oid = data[at + _OID_AT : flags_at].hex()
    mtime_ns = numbers[2] * 1_000_000_000 + numbers[3]
    ctime_ns = numbers[0] * 1_000_000_000 + numbers[1]
    skipped = flags & _EXTENDED and data[flags_at + 2] & _SKIP_WORKTREE
    stage, unwatched = (flags >> 12) & 3, bool(flags & _ASSUME_VALID or skipped)
    size = numbers[9]
    return IndexEntry(path, numbers[6], oid, stage, mtime_ns, size, ctime_ns, unwatched), after
