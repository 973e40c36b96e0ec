"""A difference for programs: a JSON document, or a patch for `git apply`.

A patch contains binary content in git's format: both sides in full, deflated, in base 85, so that
it can be applied in reverse. Above them are the git object names of both sides, which `git apply`
compares before and after.

Guarantees: in a pipe, the output is complete or empty. Memory is bounded for any size, because
content is read twice, in chunks. Content that differs on the second read raises `ContentChanged`.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b85encode
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.api.views.changes import (
    ChangeView,
    change_view,
    compared_view,
    difference_view,
    numbered_hunk_view,
)
from holdfast.domain.diff.hunk_choice import numbered
from holdfast.domain.diff.hunks import Hunk
from holdfast.domain.errors import ContentChanged
from holdfast.domain.trees.changes import Change, ChangeType
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.interfaces.cli.diff_view import (
    NOT_SHOWN,
    Line,
    content_note,
    hunk_lines,
    show_lines,
    split_type_changes,
)
from holdfast.interfaces.cli.long_output import whole_output
from holdfast.interfaces.cli.terminal import Terminal

if TYPE_CHECKING:
    from holdfast.api.diffs import Content, Difference

_ABSENT = "0" * 40
_FILE_MODE = 0o100000
_LINK_MODE = 0o120000
_LINE_BYTES, _LINE_CHARACTERS = 52, 65
_QUOTED = {0x07: b"a", 0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0B: b"v", 0x0C: b"f", 0x0D: b"r"}


def write_json(terminal: Terminal, difference: Difference, *, hunks: bool) -> None:
    ends = difference_view(difference)
    left_out = difference.left_out
    if not hunks:
        changes = [change_view(one, left_out.get(one.path)) for one in difference.changes]
        indent = 2 if terminal.for_people else None
        terminal.line(json.dumps({**ends, "changes": changes}, indent=indent))
        return
    with whole_output(terminal) as write:
        write(json.dumps(ends)[:-1].encode() + b', "changes": [')
        for number, change in enumerate(difference.changes):
            write(b", " if number else b"")
            for piece in _change_pieces(difference, change):
                write(piece.encode())
        write(b"]}\n")


def change_as_json(difference: Difference, change: Change) -> ChangeView:
    """One change with its hunks, as JSON."""
    described: ChangeView = json.loads("".join(_change_pieces(difference, change)))
    return described


def _change_pieces(difference: Difference, change: Change) -> Iterator[str]:
    content = difference.content(change)
    described = compared_view(change, difference.left_out.get(change.path), content)
    yield json.dumps(described)[:-1] + ', "hunks": ['
    for hunk in numbered(content.hunks() if content is not None else ()):
        yield (", " if hunk.number > 1 else "") + json.dumps(numbered_hunk_view(hunk))
    yield "]}"


def write_patch(terminal: Terminal, difference: Difference) -> None:
    """A pipe gets the exact bytes. On a terminal, binary content is only mentioned."""
    if terminal.for_people:
        show_lines(terminal, _patch_lines(difference, binaries=False))
        return
    with whole_output(terminal) as write:
        for line in _patch_lines(difference, binaries=True):
            write(line.data + b"\n")


def _patch_lines(difference: Difference, *, binaries: bool) -> Iterator[Line]:
    """A patch for `git apply`; with `binaries`, including binary content. Directories and withheld
    content are only mentioned."""
    for change in split_type_changes(difference.changes):
        if change.is_directory:
            yield Line(
                "note", f"directory {change.type.value}: ".encode() + _quoted(b"", change.path)
            )
            continue
        content = difference.content(change)
        if content is not None and content.kind == "withheld":
            yield Line("note", _quoted(b"", change.path) + f" {NOT_SHOWN}".encode())
            continue
        yield from _git_headings(change)
        if content is None:
            continue
        old, new = _sides(change)
        if content_note(content) is None:
            yield from _with_file_names(old, new, content.hunks())
        elif binaries:
            for data in _binary_lines(*difference.contents(change)):
                yield Line("note", data)
        else:
            yield Line("note", b"Binary files %b and %b differ" % (old, new))


def _with_file_names(old: bytes, new: bytes, hunks: Iterable[Hunk]) -> Iterator[Line]:
    """File names are written only before lines: an empty file has neither."""
    for number, hunk in enumerate(hunks):
        if number == 0:
            yield Line("heading", b"--- " + old)
            yield Line("heading", b"+++ " + new)
        yield from hunk_lines(hunk)


def _git_headings(change: Change) -> Iterator[Line]:
    before = change.old_path or change.path
    name = b"diff --git %b %b" % (_quoted(b"a/", before), _quoted(b"b/", change.path))
    yield Line("heading", name)
    if change.type is ChangeType.ADDED:
        yield Line("heading", b"new file mode %o" % _git_mode(change.new))
    elif change.type is ChangeType.REMOVED:
        yield Line("heading", b"deleted file mode %o" % _git_mode(change.old))
    elif change.modes is not None:
        yield Line("heading", b"old mode %o" % _git_mode(change.old))
        yield Line("heading", b"new mode %o" % _git_mode(change.new))
    if change.old_path is not None:
        yield Line("heading", b"similarity index 100%")
        yield Line("heading", b"rename from " + _quoted(b"", change.old_path))
        yield Line("heading", b"rename to " + _quoted(b"", change.path))


def _git_mode(entry: Entry | None) -> int:
    if isinstance(entry, FileEntry):
        return _FILE_MODE | entry.mode
    assert not isinstance(entry, DirectoryEntry)
    return _LINK_MODE


def _sides(change: Change) -> tuple[bytes, bytes]:
    before = change.old_path or change.path
    return (
        b"/dev/null" if change.old is None else _quoted(b"a/", before),
        b"/dev/null" if change.new is None else _quoted(b"b/", change.path),
    )


def _quoted(prefix: bytes, path: bytes) -> bytes:
    """A path as git writes it: quoted, with escapes, if it contains unusual characters."""
    path = prefix + path
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in path):
        return path
    written = bytearray(b'"')
    for byte in path:
        if byte in b'"\\':
            written += b"\\" + bytes([byte])
        elif byte in _QUOTED:
            written += b"\\" + _QUOTED[byte]
        elif 0x20 <= byte < 0x7F:
            written.append(byte)
        else:
            written += b"\\%03o" % byte
    return bytes(written + b'"')


def _binary_lines(old: Content | None, new: Content | None) -> Iterator[bytes]:
    names = f"{_git_name(old)}..{_git_name(new)}"
    yield f"index {names}".encode()
    yield b"GIT binary patch"
    yield from _literal(new)
    yield b""
    yield from _literal(old)
    yield b""


def _git_name(content: Content | None) -> str:
    """Git's name for the blob. Nothing relies on it for security."""
    if content is None:
        return _ABSENT
    hashed = hashlib.sha1(b"blob %d\0" % content.size_bytes, usedforsecurity=False)
    for piece in _exact_content(content):
        hashed.update(piece)
    return hashed.hexdigest()


def _literal(content: Content | None) -> Iterator[bytes]:
    yield b"literal %d" % (0 if content is None else content.size_bytes)
    packed = bytearray()
    for piece in _deflated(content):
        packed += piece
        whole = len(packed) - len(packed) % _LINE_BYTES
        yield from _base85_lines(packed[:whole])
        del packed[:whole]
    yield from _base85_lines(packed)


def _deflated(content: Content | None) -> Iterator[bytes]:
    packer = zlib.compressobj()
    for piece in _exact_content(content) if content is not None else ():
        yield packer.compress(piece)
    yield packer.flush()


def _base85_lines(data: bytearray) -> Iterator[bytes]:
    """Each line begins with its length: A is 1, Z is 26, a is 27, z is 52."""
    encoded = b85encode(data, pad=True)  # 52 bytes are whole groups, so lines can be cut afterwards
    left = len(data)
    for begin in range(0, len(encoded), _LINE_CHARACTERS):
        size = min(left, _LINE_BYTES)
        first = ord("A") - 1 if size <= 26 else ord("a") - 27
        yield b"%c%b" % (first + size, encoded[begin : begin + _LINE_CHARACTERS])
        left -= size


def _exact_content(content: Content) -> Iterator[bytes]:
    """Exactly as many bytes as the size says."""
    left = content.size_bytes
    for piece in content.chunks():
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left:
        raise ContentChanged("a file changed while it was compared", hint="run the command again")
