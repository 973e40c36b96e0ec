"""The remembered state of one directory between scans, packed tightly.

A million files must fit into memory. So a directory's files are one run of names and one run of
rows instead of objects: about 90 bytes a file. The stat cache stores the same runs.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.ids import Digest
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.trees.entries import storable_ns
from holdfast.values.classes import NamedTuple

_CHILD_ROW = struct.Struct("<I32s")
ROW = struct.Struct("<QQqqII32s")
"""inode, size, mtime_ns, ctime_ns, mode, flags, digest"""

NUMBERS = struct.Struct("<QQqqII32x")
"""The same without the digest: these fields identify an unchanged file."""

numbers_of = attrgetter("st_ino", "st_size", "st_mtime_ns", "st_ctime_ns", "st_mode")
"""The same without flags, as in a stat result."""

_HEADER = struct.Struct("<4sQqqII16s16s32sQQIII")
_MAGIC = b"HFS1"

SPARSE = 1
MANY_NAMES = 2
UNSETTLED = 4
"""The file changed so shortly before it was read that another change could go unnoticed."""

BEING_WRITTEN = 8
"""A program had the file open for writing: it may change without new times or events."""

_DIRECTORY_SETTLED = 1
_HAS_IGNORE_FILES = 2
_HAS_GIT = 4
_NOTED = 8
_BY_RULES = 16


class DirectoryKey(NamedTuple):
    """Equal keys prove that a directory still has the same names."""

    inode: int
    mtime_ns: int
    ctime_ns: int
    mode: int

    @classmethod
    def of(cls, status: os.stat_result) -> DirectoryKey:
        mtime_ns, ctime_ns = storable_ns(status.st_mtime_ns), storable_ns(status.st_ctime_ns)
        return cls.kept(status.st_ino, mtime_ns, ctime_ns, status.st_mode)

    @classmethod
    def kept(cls, inode: int, mtime_ns: int, ctime_ns: int, mode: int) -> DirectoryKey:
        """A key that shares equal numbers between fields, because there are many directories."""
        return cls(inode, mtime_ns, mtime_ns if ctime_ns == mtime_ns else ctime_ns, _shared(mode))


class FileRow(NamedTuple):
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int
    flags: int
    digest: bytes

    @classmethod
    def of(cls, status: os.stat_result, size: int, flags: int, digest: bytes) -> FileRow:
        mtime_ns, ctime_ns = storable_ns(status.st_mtime_ns), storable_ns(status.st_ctime_ns)
        return cls(status.st_ino, size, mtime_ns, ctime_ns, status.st_mode, flags, digest)


class KnownChild(NamedTuple):
    """A subdirectory as recorded in its parent's tree, before its own state is loaded."""

    mode: int
    digest: Digest


class LinkRow(NamedTuple):
    """A symbolic link: `inode` and `ctime_ns` prove that its target is unchanged."""

    name: bytes
    inode: int
    mtime_ns: int
    ctime_ns: int
    target: bytes


NOTHING: Mapping[bytes, Any] = MappingProxyType({})
"""Shared by the many directories without such entries."""

CHILDLESS: Any = NOTHING
"""For `children` of directories without any; replaced, never changed."""

_COPIED_SLOTS = (
    "by_rules",
    "has_git",
    "has_ignore_files",
    "names",
    "noted",
    "rows",
    "settled",
)


class DirectoryState:
    """One directory. `digest` is None until its tree is built; `base` is then its earlier tree.
    `noted`: something here or below was left out or has several names, so searches for such paths
    skip other directories. `stat_answer` is the raw stat result at a time when every file matched
    its row. `by_rules`: rules alone decided which files were captured."""

    __slots__ = (
        "base",
        "by_rules",
        "children",
        "chunks",
        "digest",
        "files",
        "has_git",
        "has_ignore_files",
        "key",
        "links",
        "names",
        "noted",
        "parent_rules",
        "rows",
        "rules",
        "settled",
        "size",
        "skipped",
        "stat_answer",
        "symlinks",
    )

    def __init__(self, key: DirectoryKey, parent_rules: bytes, rules: bytes) -> None:
        self.key = key
        self.parent_rules = parent_rules
        self.rules = rules
        self.settled = False
        self.by_rules = False
        self.has_ignore_files = False
        self.has_git = False
        self.noted = False
        self.names = b""
        self.rows = b""
        self.chunks: Mapping[bytes, Digest] = NOTHING
        self.links: Mapping[bytes, bytes] = NOTHING
        self.symlinks: tuple[LinkRow, ...] = ()
        self.skipped: tuple[Skipped, ...] = ()
        self.children: dict[bytes, DirectoryState | KnownChild] = CHILDLESS
        self.digest: Digest | None = None
        self.base: Digest | None = None
        self.files = 0
        self.size = 0
        self.stat_answer: bytes | None = None

    def copy(self) -> DirectoryState:
        """The same directory, without a built tree."""
        twin = DirectoryState(self.key, self.parent_rules, self.rules)
        for slot in _COPIED_SLOTS:
            setattr(twin, slot, getattr(self, slot))
        twin.chunks, twin.links = self.chunks, self.links
        twin.symlinks, twin.skipped = self.symlinks, self.skipped
        twin.children = dict(self.children) or CHILDLESS
        twin.base = self.digest or self.base
        return twin

    def is_bare(self) -> bool:
        return not self.names and not self.symlinks and not self.children

    def replace_rows(self, changed: dict[bytes, FileRow]) -> None:
        """Replace the rows of some files; the names stay the same."""
        rows = bytearray(self.rows)
        for number, name in enumerate(self.file_names()):
            if (row := changed.get(name)) is not None:
                ROW.pack_into(rows, number * ROW.size, *row)
        self.rows = bytes(rows)
        self.stat_answer = None

    def row_of(self, name: bytes) -> FileRow | None:
        names = self.file_names()
        if name not in names:
            return None
        return FileRow(*ROW.unpack_from(self.rows, names.index(name) * ROW.size))

    def file_names(self) -> list[bytes]:
        return self.names.split(b"\0") if self.names else []

    def file_rows(self) -> Iterator[tuple[bytes, FileRow]]:
        for name, row in zip(self.file_names(), ROW.iter_unpack(self.rows), strict=True):
            yield name, FileRow(*row)

    def set_files(self, files: dict[bytes, FileRow]) -> None:
        ordered = sorted(files)
        self.names = b"\0".join(ordered)
        self.rows = b"".join([ROW.pack(*files[name]) for name in ordered])
        self.stat_answer = None


def encode_state(state: DirectoryState) -> bytes:
    flags = (
        state.settled * _DIRECTORY_SETTLED
        | state.has_ignore_files * _HAS_IGNORE_FILES
        | state.has_git * _HAS_GIT
        | state.noted * _NOTED
        | state.by_rules * _BY_RULES
    )
    children = b"\0".join(state.children)
    child_rows = b"".join([_CHILD_ROW.pack(*_known(c)) for c in state.children.values()])
    rare = json.dumps(_rare_parts(state)).encode() if _has_rare_parts(state) else b""
    header = _HEADER.pack(
        _MAGIC,
        *state.key,
        flags,
        state.parent_rules,
        state.rules,
        state.digest or bytes(32),
        state.files,
        state.size,
        len(state.names),
        len(state.rows),
        len(children),
    )
    return header + state.names + state.rows + children + child_rows + rare


def _known(child: DirectoryState | KnownChild) -> KnownChild:
    if isinstance(child, KnownChild):
        return child
    assert child.digest is not None
    return KnownChild(child.key.mode, child.digest)


@lru_cache(maxsize=1024)
def _shared(value: Any) -> Any:
    """One object for equal values: many directories share a few rules and modes."""
    return value


def decode_state(data: bytes) -> DirectoryState:
    """`ValueError` if the bytes have another layout; the caller then scans afresh."""
    try:
        header = _HEADER.unpack_from(data)
    except struct.error as error:
        raise ValueError(str(error)) from None
    if header[0] != _MAGIC:
        raise ValueError("another layout")
    flags, parent_rules, rules, digest, files, size = header[5:11]
    state = DirectoryState(DirectoryKey.kept(*header[1:5]), _shared(parent_rules), _shared(rules))
    state.settled = bool(flags & _DIRECTORY_SETTLED)
    state.has_ignore_files = bool(flags & _HAS_IGNORE_FILES)
    state.has_git = bool(flags & _HAS_GIT)
    state.noted = bool(flags & _NOTED)
    state.by_rules = bool(flags & _BY_RULES)
    state.digest, state.files, state.size = Digest(digest), files, size
    names_end = _HEADER.size + header[11]
    rows_end = names_end + header[12]
    children_end = rows_end + header[13]
    state.names = data[_HEADER.size : names_end]
    state.rows = data[names_end:rows_end]
    names = data[rows_end:children_end].split(b"\0") if header[13] else []
    known_end = children_end + len(names) * _CHILD_ROW.size
    known = _CHILD_ROW.iter_unpack(data[children_end:known_end])
    if names:
        state.children = {
            name: KnownChild(mode, Digest(digest))
            for name, (mode, digest) in zip(names, known, strict=True)
        }
    if len(data) > known_end:
        _take_rare_parts(state, json.loads(data[known_end:]))
    return state


def _has_rare_parts(state: DirectoryState) -> bool:
    return bool(state.chunks or state.links or state.symlinks or state.skipped)


def _rare_parts(state: DirectoryState) -> dict[str, object]:
    return {
        "chunks": {to_text(name): digest.hex() for name, digest in state.chunks.items()},
        "links": {to_text(name): to_text(path) for name, path in state.links.items()},
        "symlinks": [
            [to_text(s.name), s.inode, s.mtime_ns, s.ctime_ns, to_text(s.target)]
            for s in state.symlinks
        ],
        "skipped": [[to_text(s.path), s.reason.name, s.detail] for s in state.skipped],
    }


def _take_rare_parts(state: DirectoryState, parts: dict[str, object]) -> None:
    chunks, links = parts["chunks"], parts["links"]
    symlinks, skipped = parts["symlinks"], parts["skipped"]
    assert isinstance(chunks, dict)
    assert isinstance(links, dict)
    assert isinstance(symlinks, list)
    assert isinstance(skipped, list)
    if chunks:
        state.chunks = {from_text(name): Digest(bytes.fromhex(d)) for name, d in chunks.items()}
    if links:
        state.links = {from_text(name): from_text(path) for name, path in links.items()}
    state.symlinks = tuple(
        LinkRow(from_text(name), inode, mtime_ns, ctime_ns, from_text(target))
        for name, inode, mtime_ns, ctime_ns, target in symlinks
    )
    state.skipped = tuple(
        Skipped(from_text(path), SkipReason[reason], detail) for path, reason, detail in skipped
    )
