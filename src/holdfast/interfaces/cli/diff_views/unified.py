"""A difference line by line, in git's form.

For people, notebooks are told by cell and nothing reaches the terminal that it would obey. `exact`,
into a pipe, writes the very bytes, binary contents included, so that `git apply` can take them: all
of them, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.domain.diff.hunks import Hunk
from holdfast.domain.trees.changes import Change, ChangeType
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.interfaces.cli.diff_views.difference import (
    NOT_SHOWN,
    all_notes,
    cell_words,
    content_note,
    full_content_note,
    notebook_notes,
    one_kind_each,
    with_labels,
)
from holdfast.interfaces.cli.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    RED,
    Terminal,
    visible_line,
)
from holdfast.interfaces.cli.whole_output import whole_output

if TYPE_CHECKING:
    from holdfast.api.diffs import ContentDiff, Difference


LineStyle = Literal["heading", "note", "hunk", " ", "+", "-"]

COLOURS: dict[LineStyle, tuple[str, ...]] = {
    "heading": (BOLD,),
    "note": (DIM,),
    "hunk": (CYAN,),
    "+": (GREEN,),
    "-": (RED,),
    " ": (),
}
_NO_NEWLINE = b"\\ No newline at end of file"
_QUOTED = {0x07: b"a", 0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0B: b"v", 0x0C: b"f", 0x0D: b"r"}
_LINK_MODE = 0o120000
_FILE_MODE = 0o100000


class Line(NamedTuple):
    style: LineStyle
    data: bytes


def show_unified(terminal: Terminal, difference: Difference, *, exact: bool) -> None:
    if exact and not terminal.for_people:
        with whole_output(terminal) as write:
            for line in patch_lines(difference, binaries=True):
                write(line.data + b"\n")
        return
    lines = (
        patch_lines(difference, binaries=False) if exact else reading_lines(terminal, difference)
    )
    show_lines(terminal, lines)


def show_lines(terminal: Terminal, lines: Iterable[Line]) -> None:
    for line in lines:
        text = visible_line(line.data)
        terminal.line(terminal.paint(text, *COLOURS[line.style]) if line.style != " " else text)


def patch_lines(difference: Difference, *, binaries: bool) -> Iterator[Line]:
    """What `git apply` takes, `binaries` or not. Directories and files whose content is withheld
    can only be mentioned."""
    for change in one_kind_each(difference.changes):
        if change.is_directory:
            yield Line(
                "note", f"directory {change.type.value}: ".encode() + quoted(b"", change.path)
            )
            continue
        content = difference.content(change)
        if content is not None and content.kind == "withheld":
            yield Line("note", quoted(b"", change.path) + f" {NOT_SHOWN}".encode())
            continue
        yield from _git_headings(change)
        if content is None:
            continue
        old, new = _sides(change)
        if content_note(content) is None:
            yield from _with_file_names(old, new, content.hunks())
        elif binaries:
            yield from _binary(difference, change)
        else:
            yield Line("note", b"Binary files %b and %b differ" % (old, new))


def _binary(difference: Difference, change: Change) -> Iterator[Line]:
    from holdfast.interfaces.cli.diff_views.binary_patch import binary_patch_lines

    for data in binary_patch_lines(*difference.contents(change)):
        yield Line("note", data)


def reading_lines(terminal: Terminal, difference: Difference) -> Iterator[Line]:
    """The same for people: what happened in words, then the lines."""
    for change in one_kind_each(difference.changes):
        yield heading_line(terminal, difference, change)
        content = difference.content(change)
        if content is None:
            continue
        note = full_content_note(difference, change, content)
        if note is not None:
            yield Line("note", f"  {note}".encode("utf-8", "surrogateescape"))
        elif content.kind == "notebook":
            yield from _cells(content)
        elif _is_link(change):
            # What a link points to is no text file: there is no line that could end.
            for hunk in content.hunks():
                yield from (line for line in _lines(hunk) if line.style != "note")
        else:
            for label, hunk in with_labels(difference, change, content.hunks()):
                yield from hunk_lines(hunk, label)


def _is_link(change: Change) -> bool:
    return isinstance(change.new or change.old, SymlinkEntry)


def heading_line(terminal: Terminal, difference: Difference, change: Change) -> Line:
    """What happened to which path, and what there is to say besides."""
    path = terminal.path(change.path) + ("/" if change.is_directory else "")
    if change.old_path is not None:
        path = f"{terminal.path(change.old_path)} → {path}"
    said = all_notes(difference, change)
    heading = f"{change.type.value} {path}" + (f" ({', '.join(said)})" if said else "")
    return Line("heading", heading.encode("utf-8", "surrogateescape"))


def _cells(content: ContentDiff) -> Iterator[Line]:
    for note in notebook_notes(content):
        yield Line("note", f"  {note}".encode())
    for cell in content.cells:
        yield Line("hunk", f"@@ {cell_words(cell)} @@".encode())
        for hunk in cell.hunks:
            yield from _lines(hunk)


def _with_file_names(old: bytes, new: bytes, hunks: Iterable[Hunk]) -> Iterator[Line]:
    """The names come only when lines follow: an empty file has none."""
    for number, hunk in enumerate(hunks):
        if number == 0:
            yield Line("heading", b"--- " + old)
            yield Line("heading", b"+++ " + new)
        yield from hunk_lines(hunk)


def hunk_lines(hunk: Hunk, label: str = "") -> Iterator[Line]:
    """A hunk as a patch has it; for people with the number to restore it by."""
    yield Line("hunk", label.encode() + hunk.header())
    yield from _lines(hunk)


def _lines(hunk: Hunk) -> Iterator[Line]:
    for line in hunk.lines:
        yield Line(line.kind, line.kind.encode() + line.text)
        if line.no_newline:
            yield Line("note", _NO_NEWLINE)


def _git_headings(change: Change) -> Iterator[Line]:
    before = change.old_path or change.path
    name = b"diff --git %b %b" % (quoted(b"a/", before), quoted(b"b/", change.path))
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
        yield Line("heading", b"rename from " + quoted(b"", change.old_path))
        yield Line("heading", b"rename to " + quoted(b"", change.path))


def _git_mode(entry: Entry | None) -> int:
    if isinstance(entry, FileEntry):
        return _FILE_MODE | entry.mode
    assert not isinstance(entry, DirectoryEntry)
    return _LINK_MODE


def _sides(change: Change) -> tuple[bytes, bytes]:
    before = change.old_path or change.path
    return (
        b"/dev/null" if change.old is None else quoted(b"a/", before),
        b"/dev/null" if change.new is None else quoted(b"b/", change.path),
    )


def quoted(prefix: bytes, path: bytes) -> bytes:
    """A path as git writes it: in quotes, with escapes, when it holds anything unusual."""
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
