"""Parses a repository's index without git: its paths, their content, and the stat data of the files
that git saw.

    header → entries (62 or 64 bytes, then the name) → extensions, which are not needed

Versions 2 to 4 are read. A split or sparse index does not list every path; `is_whole` says so.
Finding the names takes a fifth of the time of creating an object for each entry, so callers that
need a few paths use `IndexEntries`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from holdfast.domain.git.index import UnknownIndex, index_entries, read_tracked_names
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import SeenFile
from holdfast.values.classes import dataclass

GITLINK = 0o160000
_HEADER = struct.Struct(">4sI4x")
_STAT = struct.Struct(">10I")
_OID_AT = 40
_KIND_AT, _KIND_MASK, _DIRECTORY = 26, 0xF0, 0x40
_EXTENDED = 0x4000
_ASSUME_VALID, _SKIP_WORKTREE = 0x8000, 0x40
_STAGE_MASK = 0x30
_COMPARED_MODE = 0o170100
"""The file type, and whether the user may execute it."""


class IndexChecksum:
    """Verifies that an index is as git wrote it: its last bytes are the digest of the rest. Git
    itself does not check, and accepts a truncated index as a different one."""

    def __init__(self, like: str | None) -> None:
        """`like` is the name of an object in the same repository, if there is any."""
        import hashlib  # late: takes milliseconds, and most uses of an index do not need it

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
        """Call it after all blocks have passed. `index.skipHash` leaves only zeros."""
        right = (self._digest.digest(), bytes(self._digest.digest_size))
        return self._known and self._end != b"" and self._end not in right


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """`stage` is 0 unless the path is in conflict. `unwatched`: git does not check the file, or
    leaves it out of the working tree."""

    path: bytes
    mode: int
    oid: str
    stage: int
    mtime_ns: int
    size: int
    ctime_ns: int = 0
    unwatched: bool = False


class IndexEntries(Mapping[bytes, IndexEntry]):
    """The entries by path; for a path in conflict, the last one."""

    def __init__(self, data: bytes, like: str | None = None) -> None:
        self._data = data
        self._oid_bytes = _oid_bytes(like)
        self._starts = dict(_starts(data, self._oid_bytes))
        self._paths = sorted(self._starts)

    def __getitem__(self, path: bytes) -> IndexEntry:
        return _entry(self._data, self._starts[path], self._oid_bytes, path)

    def __contains__(self, path: object) -> bool:
        return path in self._starts

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def is_whole(self) -> bool:
        """Whether it lists every path: most of a split index is in another file, and a sparse one
        has directories."""
        data = self._data
        return shared_file(data) is None and not any(
            data[at + _KIND_AT] & _KIND_MASK == _DIRECTORY for at in self._starts.values()
        )

    def below(self, directory: bytes) -> list[bytes]:
        start, end = directory + b"/", directory + b"0"
        return self._paths[bisect_left(self._paths, start) : bisect_left(self._paths, end)]

    @cached_property
    def directories(self) -> dict[bytes, list[bytes]]:
        """The paths by directory."""
        found: dict[bytes, list[bytes]] = {}
        for path in self._paths:
            found.setdefault(path.rpartition(b"/")[0], []).append(path)
        return found

    def is_as_seen(self, path: bytes, seen: SeenFile, before_ns: int) -> bool:
        """Whether a path is a plain file without conflict, with these numbers, modified before that
        time. Fast enough for very many paths."""
        at = self._starts[path]
        if self._data[at + _OID_AT + self._oid_bytes] & _STAGE_MASK:
            return False
        recorded = _STAT.unpack_from(self._data, at)
        size, mtime_ns, ctime_ns, mode = seen
        return (
            recorded[2] * 1_000_000_000 + recorded[3] == mtime_ns
            and mtime_ns < before_ns
            and recorded[0] * 1_000_000_000 + recorded[1] == ctime_ns
            and recorded[9] == size & 0xFFFFFFFF
            and (recorded[6] ^ mode) & _COMPARED_MODE == 0
        )


def read_index(data: bytes, like: str | None = None) -> Iterator[IndexEntry]:
    """Entries in order; `UnknownIndex` for anything else or another version. `like` is the name of
    any object in the repository, if there is one: all have the same length."""
    length = _oid_bytes(like)
    return (_entry(data, at, length, path) for path, at in _starts(data, length))


def is_same_index(one: bytes, other: bytes, like: str | None = None) -> bool:
    """Whether both have the same entries. `git status` refreshes the file times in an index, which
    does not make it a different one."""
    return one == other or staged_digest(one, like) == staged_digest(other, like)


def staged_digest(data: bytes, like: str | None = None) -> str:
    """Equal for indexes with the same entries. An index that is unreadable or split equals only
    itself, because most entries of a split one are in another file."""
    if shared_file(data) is not None:
        return digest_of(data).hex()
    try:
        rows = [(e.path, e.mode, e.oid, e.stage) for e in read_index(data, like)]
    except UnknownIndex:
        return digest_of(data).hex()
    return digest_of_rows(rows)


def digest_of_rows(rows: Sequence[tuple[bytes, int, str, int]]) -> str:
    """The `staged_digest` of an index with these entries: path, mode, object and stage."""
    return digest_of(repr(list(rows)).encode()).hex()


def shared_file(data: bytes) -> str | None:
    """The name of the file that a split index shares; None if it is not split."""
    if b"link" not in data:
        return None
    try:
        shared = read_tracked_names(data).shared
    except UnknownIndex:
        return None
    return None if shared is None else shared.decode()


def _oid_bytes(like: str | None) -> int:
    return 20 if like is None else len(like) // 2


def _starts(data: bytes, oid_bytes: int) -> Iterable[tuple[bytes, int]]:
    """Each path, and the offset of its entry."""
    if len(data) < _HEADER.size:
        raise UnknownIndex("it is truncated")
    magic, version = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise UnknownIndex(f"its version {version} is not supported")
    try:
        names, places, _ = index_entries(data, version, oid_bytes)
    except (IndexError, ValueError):
        raise UnknownIndex("it is damaged") from None
    return zip(names, places, strict=True)


def _entry(data: bytes, at: int, oid_bytes: int, path: bytes) -> IndexEntry:
    numbers = _STAT.unpack_from(data, at)
    flags_at = at + _OID_AT + oid_bytes
    flags = data[flags_at] << 8 | data[flags_at + 1]
    oid = data[at + _OID_AT : flags_at].hex()
    mtime_ns = numbers[2] * 1_000_000_000 + numbers[3]
    ctime_ns = numbers[0] * 1_000_000_000 + numbers[1]
    skipped = flags & _EXTENDED and data[flags_at + 2] & _SKIP_WORKTREE
    stage, unwatched = (flags >> 12) & 3, bool(flags & _ASSUME_VALID or skipped)
    return IndexEntry(path, numbers[6], oid, stage, mtime_ns, numbers[9], ctime_ns, unwatched)
