"""The diff of an edit, as stored in the story: a compressed unified diff.

    4 B size of the diff | 1 B codec | the diff, compressed if that is smaller

Binary content, and content too large to compare, is represented by its sizes. For ignored files
only the fact of the change is recorded. The diff of one edit is bounded; omitted parts are
reported.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterable, Iterator

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.paths import basename, parent
from holdfast.domain.purges import TextReplacement
from holdfast.domain.trees.entries import FileEntry, SymlinkEntry
from holdfast.engine.compare.content_diff import BytesContent, compare_content
from holdfast.engine.compare.tree_diff import WITHHELD, IgnoredContent
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.scan.stable_read import read_whole
from holdfast.engine.stored_objects import entry_at, read_content
from holdfast.engine.vault import Vault
from holdfast.values.compression import Codec, compress, decompress

_HEAD = struct.Struct("<IB")
_LARGEST_FILE_BYTES = 4 << 20
_LARGEST_DIFF_BYTES = 1 << 20


def edit_diff(vault: Vault, before: Checkpoint, paths: Iterable[bytes]) -> bytes:
    """The difference between a checkpoint's files and the current ones; compressed."""
    parts: list[bytes] = []
    size = 0
    ignored = IgnoredContent(vault)
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in paths:
            old = _stored(vault, before, path)
            new = _present(vault, handles, path)
            withheld = old != new and ignored.rule(path) is not None
            for part in _withheld(path) if withheld else _difference(path, old, new):
                size += len(part)
                if size > _LARGEST_DIFF_BYTES:
                    parts.append(b"(the rest is left out: the diff is too large)\n")
                    return _packed(b"".join(parts))
                parts.append(part)
    return _packed(b"".join(parts))


def unpacked_diff(data: bytes) -> str:
    """The unified diff as text; bytes that are not UTF-8 are replaced."""
    size, codec = _HEAD.unpack_from(data)
    text = decompress(Codec(codec), data[_HEAD.size :], size, None)
    return text.decode("utf-8", "replace")


def repacked_diff(data: bytes, replacement: TextReplacement) -> bytes:
    """With a text replaced; unchanged if it does not contain the text."""
    size, codec = _HEAD.unpack_from(data)
    text = decompress(Codec(codec), data[_HEAD.size :], size, None)
    said = text.decode("utf-8", "surrogateescape")
    new = replacement.text(said)
    return data if new == said else _packed(new.encode("utf-8", "surrogateescape"))


def _packed(text: bytes) -> bytes:
    codec, packed = compress(text)
    return _HEAD.pack(len(text), codec) + packed


def _stored(vault: Vault, before: Checkpoint, path: bytes) -> bytes | int | None:
    """The bytes, or their size if they are too large, or None if there is no file."""
    entry = entry_at(vault.load_tree, before.tree, path)
    if isinstance(entry, SymlinkEntry):
        return entry.target
    if not isinstance(entry, FileEntry):
        return None
    if entry.size > _LARGEST_FILE_BYTES:
        return entry.size
    return b"".join(read_content(vault.objects, entry))


def _present(vault: Vault, handles: DirectoryHandles, path: bytes) -> bytes | int | None:
    from os import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK, O_RDONLY

    try:
        area = handles.open(parent(path))
        status = vault.fs.stat(basename(path), dir_fd=area, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return vault.fs.readlink(basename(path), dir_fd=area)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > _LARGEST_FILE_BYTES:
            return status.st_size
        flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        fd = vault.fs.open(basename(path), flags, dir_fd=area)
    except OSError as error:
        if error.errno in NO_DIRECTORY:
            return None
        return -1
    try:
        return read_whole(vault.fs, fd, status.st_size)
    except OSError:
        return -1
    finally:
        vault.fs.close(fd)


def _withheld(path: bytes) -> Iterator[bytes]:
    """Stories are exported and searched, so for an ignored file they only record the change."""
    yield b"--- a/" + path + b"\n+++ b/" + path + b"\n"
    yield f"({WITHHELD})\n".encode()


def _difference(path: bytes, old: bytes | int | None, new: bytes | int | None) -> Iterator[bytes]:
    if old == new:
        return
    yield b"--- " + (b"/dev/null" if old is None else b"a/" + path) + b"\n"
    yield b"+++ " + (b"/dev/null" if new is None else b"b/" + path) + b"\n"
    if isinstance(old, int) or isinstance(new, int):
        yield b"(too large, or not readable: not compared)\n"
        return
    found = compare_content(
        path,
        None if old is None else BytesContent(old),
        None if new is None else BytesContent(new),
        git=lambda: None,
    )
    if found.kind in ("binary", "too_large"):
        yield b"(%b: %d bytes became %d)\n" % (
            found.kind.replace("_", " ").encode(),
            len(old or b""),
            len(new or b""),
        )
        return
    for hunk in found.hunks():
        yield hunk.header() + b"\n"
        for line in hunk.lines:
            yield line.kind.encode() + line.text + b"\n"
            if line.no_newline:
                yield b"\\ No newline at end of file\n"
