"""One directory as an immutable, canonically encoded value.

Layout (little endian), in columns, so that decoding runs in C and the bytes compress well. Names in
each column are sorted and joined by NUL:

    magic "HFT1" | u32 files | u32 directories | u32 symlinks | u32 chunked | u32 linked
    u32 length of file names | u32 of directory names | u32 of symlink names | u32 of targets
    file names | directory names | symlink names | symlink targets
    file rows       u16 mode, u8 flags (1 sparse), u64 size, i64 mtime_ns, 32 B digest
    directory rows  u16 mode, u64 files, u64 bytes, 32 B digest
    symlink rows    i64 mtime_ns
    chunked rows    u32 file number, 32 B digest of the chunk list
    linked rows     u32 file number, u16 length, path of the group

Equal directories encode to equal bytes, so equal subtrees share one object and compare by digest.
Decoding refuses anything that is not canonical, and every name that must not reach a file system,
so that a hostile store is stopped here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any

from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import are_safe_names, is_safe_name, require_safe_path, to_text
from holdfast.domain.trees.entries import MODE_MASK, DirectoryEntry, Entry, FileEntry, SymlinkEntry

_MAGIC = b"HFT1"
_HEADER = struct.Struct("<4s9I")
FILE_ROW = struct.Struct("<HBQq32s")
_DIRECTORY_ROW = struct.Struct("<HQQ32s")
_SYMLINK_ROW = struct.Struct("<q")
_CHUNKED_ROW = struct.Struct("<I32s")
_LINKED_ROW = struct.Struct("<IH")
SPARSE = 1
_MODE, _FLAGS = itemgetter(0), itemgetter(1)


class Tree:
    """The entries of one directory, each kind sorted by name. Immutable."""

    def __init__(
        self,
        files: tuple[FileEntry, ...] = (),
        directories: tuple[DirectoryEntry, ...] = (),
        symlinks: tuple[SymlinkEntry, ...] = (),
    ) -> None:
        self._entries = (files, directories, symlinks)

    @property
    def files(self) -> tuple[FileEntry, ...]:
        return self._entries[0]

    @property
    def directories(self) -> tuple[DirectoryEntry, ...]:
        return self._entries[1]

    @property
    def symlinks(self) -> tuple[SymlinkEntry, ...]:
        return self._entries[2]

    @cached_property
    def by_name(self) -> dict[bytes, Entry]:
        entries: dict[bytes, Entry] = {entry.name: entry for entry in self.files}
        entries.update((entry.name, entry) for entry in self.directories)
        entries.update((entry.name, entry) for entry in self.symlinks)
        return entries

    @property
    def rows(self) -> Mapping[bytes, object]:
        """A value for each name; equal values in two trees mean equal entries."""
        return self.by_name

    def entry(self, name: bytes) -> Entry | None:
        return self.by_name.get(name)

    @property
    def file_count(self) -> int:
        """Files and links here and below, as people count files."""
        here = len(self.files) + len(self.symlinks)
        return here + sum(entry.files for entry in self.directories)

    @property
    def size_bytes(self) -> int:
        return sum(f.size for f in self.files) + sum(d.size for d in self.directories)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"Tree{self._values()!r}"

    def _values(self) -> tuple[tuple[Entry, ...], ...]:
        return self.files, self.directories, self.symlinks


class _DecodedTree(Tree):
    """Creates entries on demand, because trees are compared by their rows, and few rows differ.
    Each of the `columns` has a row for each name."""

    def __init__(self, columns: tuple[dict[bytes, tuple[Any, ...]], ...]) -> None:
        self._columns = columns

    @cached_property
    def files(self) -> tuple[FileEntry, ...]:
        return tuple([_file(name, row) for name, row in self._columns[0].items()])

    @cached_property
    def directories(self) -> tuple[DirectoryEntry, ...]:
        return tuple([_directory(name, row) for name, row in self._columns[1].items()])

    @cached_property
    def symlinks(self) -> tuple[SymlinkEntry, ...]:
        return tuple([_symlink(name, row) for name, row in self._columns[2].items()])

    @cached_property
    def rows(self) -> Mapping[bytes, object]:
        files, directories, symlinks = self._columns
        return files | directories | symlinks if directories or symlinks else files

    def entry(self, name: bytes) -> Entry | None:
        for make, column in zip(_MAKERS, self._columns, strict=True):
            if name in column:
                return make(name, column[name])
        return None


def _file(name: bytes, row: tuple[Any, ...]) -> FileEntry:
    mode, flags, size, mtime_ns, digest, *details = row
    chunks, link = details or (None, None)
    return FileEntry(name, mode, size, mtime_ns, digest, chunks, flags == SPARSE, link)


def _directory(name: bytes, row: tuple[Any, ...]) -> DirectoryEntry:
    mode, files, size, digest = row
    return DirectoryEntry(name, mode, digest, files, size)


def _symlink(name: bytes, row: tuple[Any, ...]) -> SymlinkEntry:
    return SymlinkEntry(name, *row)


_MAKERS: tuple[Callable[[bytes, tuple[Any, ...]], Entry], ...] = (_file, _directory, _symlink)
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
    """A tree from sorted columns, as a scan has them."""
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
    """The encoded tree; `ObjectDamaged` if `data` is not a valid encoding."""
    try:
        return _decode(data)
    except (struct.error, ValueError, IndexError) as error:
        raise ObjectDamaged(f"a directory in the store cannot be decoded: {error}") from None


def _decode(data: bytes) -> Tree:
    """Refuses everything that an encoder would not write, so one tree has one encoding."""
    header = _HEADER.unpack_from(data)
    magic, n_files, n_directories, n_symlinks, n_chunked, n_linked = header[:6]
    if magic != _MAGIC:
        raise ValueError("unknown format")
    at = _HEADER.size + sum(header[6:])
    counts = (n_files, n_directories, n_symlinks)
    file_names, *other_names, targets = _names(data[_HEADER.size : at], counts, header[6:])
    files, at = _rows(data, at, FILE_ROW, file_names)
    directories, at = _rows(data, at, _DIRECTORY_ROW, other_names[0])
    symlinks, at = _rows(data, at, _SYMLINK_ROW, other_names[1])
    _require_sound_rows(files, directories)
    if n_chunked or n_linked:
        chunks, at = _rows(data, at, _CHUNKED_ROW, range(n_chunked))
        links, at = _decode_links(data, at, n_linked)
        _add_details(files, file_names, list(chunks.values()), links)
    if at != len(data):
        raise ValueError("data after the end, or none")
    with_targets = {
        name: (target, *row) for (name, row), target in zip(symlinks.items(), targets, strict=True)
    }
    return _DecodedTree((files, directories, with_targets))


def _rows(
    data: bytes, at: int, layout: struct.Struct, names: Sequence[Any]
) -> tuple[dict[Any, tuple[Any, ...]], int]:
    """A row for each name, and the offset after them; `ValueError` if there are fewer."""
    if not names:
        return {}, at
    end = at + layout.size * len(names)
    return dict(zip(names, layout.iter_unpack(data[at:end]), strict=True)), end


def _add_details(
    files: dict[bytes, tuple[Any, ...]],
    names: Sequence[bytes],
    chunk_rows: list[tuple[Any, ...]],
    links: dict[int, bytes],
) -> None:
    chunks = dict(chunk_rows)
    for numbers in ([number for number, _ in chunk_rows], list(links)):
        if numbers != sorted(set(numbers)) or (numbers and numbers[-1] >= len(names)):
            raise ValueError("a detail row has no file, or one out of order")
    for number in chunks.keys() | links.keys():
        name = names[number]
        files[name] = (*files[name], chunks.get(number), links.get(number))


@lru_cache(maxsize=32)
def _names(
    data: bytes, counts: tuple[int, int, int], lengths: tuple[int, int, int, int]
) -> tuple[tuple[bytes, ...], ...]:
    """The columns of names, and the targets of links. Cached, because successive versions of a
    directory mostly have the same names."""
    columns: list[list[bytes]] = []
    offset = 0
    for count, length in zip((*counts, counts[2]), lengths, strict=True):
        column = data[offset : offset + length].split(b"\0") if count else []
        if len(column) != count or (length and not count):
            raise ValueError("a column of names does not match its count")
        columns.append(column)
        offset += length
    *names, targets = columns
    _require_sound_names(*names)
    if b"" in targets:
        raise ValueError("a link has no target")
    return tuple(map(tuple, columns))


def _require_sound_rows(
    files: dict[bytes, tuple[Any, ...]], directories: dict[bytes, tuple[Any, ...]]
) -> None:
    if files and max(map(_MODE, files.values())) > MODE_MASK:
        raise ValueError("a file has an unknown mode")
    if files and max(map(_FLAGS, files.values())) > SPARSE:
        raise ValueError("a file has an unknown flag")
    if directories and max(map(_MODE, directories.values())) > MODE_MASK:
        raise ValueError("a directory has an unknown mode")


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
    expected = 0
    for names in filter(None, columns):
        if not are_safe_names(names):
            unsafe = next(name for name in names if not is_safe_name(name))
            raise ValueError(f"the name {to_text(unsafe)!r} is not allowed")
        if names != sorted(names) or len(set(names)) != len(names):
            raise ValueError("names are not sorted and unique")
        expected += len(names)
        seen.update(names)
    if len(seen) != expected:
        raise ValueError("one name has two entries")
