"""One directory as an immutable, canonically encoded value.

Layout (little endian), columns rather than records so that decoding runs in C and the bytes
compress well; names in each column are sorted and joined by NUL:

    magic "HFT1" | u32 files | u32 directories | u32 symlinks | u32 chunked | u32 linked
    u32 length of file names | u32 of directory names | u32 of symlink names | u32 of targets
    file names | directory names | symlink names | symlink targets
    file rows       u16 mode, u8 flags (1 sparse), u64 size, i64 mtime_ns, 32 B digest
    directory rows  u16 mode, u64 files, u64 bytes, 32 B digest
    symlink rows    i64 mtime_ns
    chunked rows    u32 file number, 32 B digest of the chunk list
    linked rows     u32 file number, u16 length, path of the group

Equal directories encode to equal bytes, so equal subtrees share one object and compare by name.
Decoding refuses anything not canonical, and every name that must not reach a file system, so a
tree from a hostile store is stopped here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import is_safe_name, require_safe_path, to_text
from holdfast.domain.trees.entries import MODE_MASK, DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.values.classes import dataclass

_MAGIC = b"HFT1"
_HEADER = struct.Struct("<4s9I")
FILE_ROW = struct.Struct("<HBQq32s")
_DIRECTORY_ROW = struct.Struct("<HQQ32s")
_SYMLINK_ROW = struct.Struct("<q")
_CHUNKED_ROW = struct.Struct("<I32s")
_LINKED_ROW = struct.Struct("<IH")
SPARSE = 1


@dataclass(frozen=True)
class Tree:
    """The entries of one directory, each kind sorted by name."""

    files: tuple[FileEntry, ...] = ()
    directories: tuple[DirectoryEntry, ...] = ()
    symlinks: tuple[SymlinkEntry, ...] = ()

    @cached_property
    def by_name(self) -> dict[bytes, Entry]:
        entries: dict[bytes, Entry] = {entry.name: entry for entry in self.files}
        entries.update((entry.name, entry) for entry in self.directories)
        entries.update((entry.name, entry) for entry in self.symlinks)
        return entries

    @property
    def file_count(self) -> int:
        """Files and links here and below: what a person counts as files."""
        here = len(self.files) + len(self.symlinks)
        return here + sum(entry.files for entry in self.directories)

    @property
    def size_bytes(self) -> int:
        return sum(f.size for f in self.files) + sum(d.size for d in self.directories)


EMPTY_TREE = Tree()


def encode_tree(tree: Tree) -> bytes:
    row = FILE_ROW.pack
    return encode_columns(
        b"\0".join([entry.name for entry in tree.files]),
        [row(f.mode, f.sparse * SPARSE, f.size, f.mtime_ns, f.digest) for f in tree.files],
        tree.directories,
        tree.symlinks,
        [(i, entry.chunks) for i, entry in enumerate(tree.files) if entry.chunks is not None],
        [(i, entry.link) for i, entry in enumerate(tree.files) if entry.link is not None],
    )


def encode_columns(
    file_names: bytes,
    file_rows: list[bytes],
    directories: Sequence[DirectoryEntry],
    symlinks: Sequence[SymlinkEntry],
    chunked: list[tuple[int, Digest]],
    linked: list[tuple[int, bytes]],
) -> bytes:
    """A tree from columns that are in order already: what a scan has in hand."""
    directory_names = b"\0".join([entry.name for entry in directories])
    symlink_names = b"\0".join([entry.name for entry in symlinks])
    targets = b"\0".join([entry.target for entry in symlinks])
    parts = [
        _HEADER.pack(
            _MAGIC,
            len(file_rows),
            len(directories),
            len(symlinks),
            len(chunked),
            len(linked),
            len(file_names),
            len(directory_names),
            len(symlink_names),
            len(targets),
        ),
        file_names,
        directory_names,
        symlink_names,
        targets,
        *file_rows,
    ]
    parts += [_DIRECTORY_ROW.pack(d.mode, d.files, d.size, d.digest) for d in directories]
    parts += [_SYMLINK_ROW.pack(link.mtime_ns) for link in symlinks]
    parts += [_CHUNKED_ROW.pack(i, digest) for i, digest in chunked]
    parts += [_LINKED_ROW.pack(i, len(path)) + path for i, path in linked]
    return b"".join(parts)


def decode_tree(data: bytes) -> Tree:
    """The tree that `data` encodes; `ObjectDamaged` when it is not the encoding of any."""
    try:
        return _decode(data)
    except (struct.error, ValueError, IndexError) as error:
        raise ObjectDamaged(f"a directory in the store cannot be decoded: {error}") from None


def _decode(data: bytes) -> Tree:
    """Everything that an encoder would not have written is refused: one tree has one encoding."""
    header = _HEADER.unpack_from(data)
    magic, n_files, n_directories, n_symlinks, n_chunked, n_linked = header[:6]
    if magic != _MAGIC:
        raise ValueError("unknown format")
    offset = _HEADER.size
    columns: list[list[bytes]] = []
    counts = (n_files, n_directories, n_symlinks, n_symlinks)
    for count, length in zip(counts, header[6:], strict=True):
        column = data[offset : offset + length].split(b"\0") if count else []
        if len(column) != count or (length and not count):
            raise ValueError("a column of names does not match its count")
        columns.append(column)
        offset += length
    file_names, directory_names, symlink_names, targets = columns
    _require_sound_names(file_names, directory_names, symlink_names)
    if b"" in targets:
        raise ValueError("a link has no target")

    def rows(layout: struct.Struct, count: int) -> list[tuple[Any, ...]]:
        nonlocal offset
        end = offset + layout.size * count
        if end > len(data):
            raise ValueError("truncated")
        unpacked = list(layout.iter_unpack(data[offset:end]))
        offset = end
        return unpacked

    file_rows = rows(FILE_ROW, n_files)
    directory_rows = rows(_DIRECTORY_ROW, n_directories)
    symlink_rows = rows(_SYMLINK_ROW, n_symlinks)
    chunk_rows = rows(_CHUNKED_ROW, n_chunked)
    links, offset = _decode_links(data, offset, n_linked)
    if offset != len(data):
        raise ValueError("data after the end")
    _require_sound_rows(file_rows, directory_rows, [n for n, _ in chunk_rows], list(links))
    chunks = {number: Digest(digest) for number, digest in chunk_rows}
    return Tree(
        files=tuple(
            FileEntry(
                name,
                mode,
                size,
                mtime_ns,
                Digest(digest),
                chunks.get(number),
                flags == SPARSE,
                links.get(number),
            )
            for number, (name, (mode, flags, size, mtime_ns, digest)) in enumerate(
                zip(file_names, file_rows, strict=True)
            )
        ),
        directories=tuple(
            DirectoryEntry(name, mode, Digest(digest), files, size)
            for name, (mode, files, size, digest) in zip(
                directory_names, directory_rows, strict=True
            )
        ),
        symlinks=tuple(
            SymlinkEntry(name, target, mtime_ns)
            for name, target, (mtime_ns,) in zip(symlink_names, targets, symlink_rows, strict=True)
        ),
    )


def _require_sound_rows(
    file_rows: list[tuple[Any, ...]],
    directory_rows: list[tuple[Any, ...]],
    *details: list[int],
) -> None:
    if any(row[0] > MODE_MASK or row[1] > SPARSE for row in file_rows):
        raise ValueError("a file has an unknown mode or flag")
    if any(row[0] > MODE_MASK for row in directory_rows):
        raise ValueError("a directory has an unknown mode")
    for numbers in details:
        if numbers != sorted(set(numbers)) or (numbers and numbers[-1] >= len(file_rows)):
            raise ValueError("a detail row has no file, or one out of order")


def _decode_links(data: bytes, offset: int, count: int) -> tuple[dict[int, bytes], int]:
    links: dict[int, bytes] = {}
    for _ in range(count):
        number, length = _LINKED_ROW.unpack_from(data, offset)
        offset += _LINKED_ROW.size
        links[number] = require_safe_path(data[offset : offset + length])
        offset += length
    if len(links) != count:
        raise ValueError("one file is listed twice")
    return links, offset


def _require_sound_names(*columns: list[bytes]) -> None:
    seen: set[bytes] = set()
    for names in columns:
        for name in names:
            if not is_safe_name(name):
                raise ValueError(f"the name {to_text(name)!r} is not allowed")
        if names != sorted(set(names)):
            raise ValueError("names are not sorted and unique")
        if not seen.isdisjoint(names):
            raise ValueError("one name has two entries")
        seen.update(names)
