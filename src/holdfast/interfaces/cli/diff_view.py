"""A difference for people: changed paths with notes, then the changed lines as in git.

Notebooks are compared by cell. Control characters never reach the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal

from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT
from holdfast.domain.diff.hunks import Hunk
from holdfast.domain.ids import short
from holdfast.domain.paths import typed
from holdfast.domain.trees.changes import Change, ChangeType
from holdfast.domain.trees.entries import FileEntry, SymlinkEntry, kind_of
from holdfast.interfaces.cli.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    RED,
    Terminal,
    visible_line,
)
from holdfast.interfaces.cli.wording import size
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.api.diffs import CellChange, ContentDiff, Difference

NOT_SHOWN = "not shown: ignored by your rules"
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


class Line(NamedTuple):
    style: LineStyle
    data: bytes


def all_notes(difference: Difference, change: Change) -> list[str]:
    """All notes on a change, besides its lines."""
    said = notes(change)
    if (reason := difference.left_out.get(change.path)) is not None:
        when = "now" if change.type is ChangeType.REMOVED else "then"
        said.append(f"left out {when}: {reason}")
    return said


def full_content_note(difference: Difference, change: Change, content: ContentDiff) -> str | None:
    """The note in place of lines; for ignored content, with the command that restores the file."""
    note = content_note(content)
    if content.kind != "withheld" or note is None:
        return note
    holder, path = difference.old, change.old_path or change.path
    if change.old is None:
        holder, path = difference.new, change.path
    if holder is None:
        return note  # only the workspace has it
    return f"{NOT_SHOWN}; to restore it: holdfast restore {short(holder.id)} {typed(path)}"


def split_type_changes(changes: Sequence[Change]) -> Iterator[Change]:
    """Split a change of type, such as from file to link, into a removal and an addition."""
    for change in changes:
        if change.old is None or change.new is None or kind_of(change.old) == kind_of(change.new):
            yield change
            continue
        yield Change(change.path, ChangeType.REMOVED, change.old, None)
        yield Change(change.path, ChangeType.ADDED, None, change.new)


def with_labels(
    difference: Difference, change: Change, hunks: Iterable[Hunk]
) -> Iterator[tuple[str, Hunk]]:
    """Each hunk with the number that restores it, if there is one. The label also gives the context
    lines, because another number makes other hunks."""
    how = "" if difference.context == DEFAULT_CONTEXT else f" of -U{difference.context}"
    coming = iter(hunks)
    first = list(islice(coming, 2))
    wanted = difference.has_numbers(change) and len(first) > 1
    for number, hunk in enumerate(chain(first, coming), 1):
        yield f"hunk {number}{how}: " if wanted else "", hunk


def changed_path(terminal: Terminal, change: Change) -> str:
    """The path as users type it; both paths of a rename, and directories with a slash."""
    path = terminal.path(change.path) + ("/" if change.is_directory else "")
    return path if change.old_path is None else f"{terminal.path(change.old_path)} → {path}"


def notes(change: Change) -> list[str]:
    """Notes on the change itself, besides its lines."""
    old, new = change.old, change.new
    said: list[str] = []
    if change.is_directory:
        said.append("directory")
    if isinstance(old, FileEntry) and isinstance(new, FileEntry):
        if old.link != new.link and old.mode == new.mode and old.same_content(new):
            said.append("hard links changed")
        if change.type is ChangeType.RENAMED and old.same_content(new):
            said.append("content unchanged")
    if (modes := change.modes) is not None:
        said.append(f"mode {modes[0]:04o} → {modes[1]:04o}")
    if isinstance(old, SymlinkEntry) or isinstance(new, SymlinkEntry):
        said.append("symbolic link")
    return said


def content_note(content: ContentDiff) -> str | None:
    """The text in place of lines if there are none to show."""
    if content.kind == "withheld":
        return f"{NOT_SHOWN}, {_sizes(content)}"
    if content.kind == "binary":
        return f"binary, {_sizes(content)}"
    if content.kind == "too_large":
        return (
            f"too large to compare by line, {_sizes(content)}, "
            f"first difference at byte {content.first_difference or 0:,}"
        )
    return None


def notebook_notes(content: ContentDiff) -> list[str]:
    """Changes in a notebook outside its cells."""
    if content.notebook_metadata_changed:
        return ["notebook metadata changed"]
    return [] if content.cells else ["no cell changed, only the formatting of the file"]


def cell_words(cell: CellChange) -> str:
    index = cell.index_new if cell.index_new is not None else cell.index_old
    word = cell.change.replace("_", " ")
    word = word if word in ("added", "removed", "modified") else f"{word} changed"
    return f"cell {(index or 0) + 1} ({cell.cell_type}) {word}"


def _sizes(content: ContentDiff) -> str:
    old, new = content.old_size_bytes, content.new_size_bytes
    if old is None or new is None:
        return size(new if old is None and new is not None else old or 0)
    return f"{size(old)} → {size(new)}"


def show_difference(terminal: Terminal, difference: Difference) -> None:
    show_lines(terminal, display_lines(terminal, difference))


def show_lines(terminal: Terminal, lines: Iterable[Line]) -> None:
    for line in lines:
        terminal.line(visible_line(line.data), *COLOURS[line.style])


def display_lines(terminal: Terminal, difference: Difference) -> Iterator[Line]:
    """Each changed path with its type of change, then its changed lines."""
    for change in split_type_changes(difference.changes):
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
            # A link target is not a text file, so it has no missing newline at its end.
            for hunk in content.hunks():
                yield from (line for line in _lines(hunk) if line.style != "note")
        else:
            for label, hunk in with_labels(difference, change, content.hunks()):
                yield from hunk_lines(hunk, label)


def _is_link(change: Change) -> bool:
    return isinstance(change.new or change.old, SymlinkEntry)


def heading_line(terminal: Terminal, difference: Difference, change: Change) -> Line:
    """The type of change, the path and the notes."""
    heading = f"{change.type.value} {changed_path(terminal, change)}"
    if said := all_notes(difference, change):
        heading += f" ({', '.join(said)})"
    return Line("heading", heading.encode("utf-8", "surrogateescape"))


def _cells(content: ContentDiff) -> Iterator[Line]:
    for note in notebook_notes(content):
        yield Line("note", f"  {note}".encode())
    for cell in content.cells:
        yield Line("hunk", f"@@ {cell_words(cell)} @@".encode())
        for hunk in cell.hunks:
            yield from _lines(hunk)


def hunk_lines(hunk: Hunk, label: str = "") -> Iterator[Line]:
    """A hunk as in a patch; for people, with the number that restores it."""
    yield Line("hunk", label.encode() + hunk.header())
    yield from _lines(hunk)


def _lines(hunk: Hunk) -> Iterator[Line]:
    for line in hunk.lines:
        yield Line(line.kind, line.kind.encode() + line.text)
        if line.no_newline:
            yield Line("note", _NO_NEWLINE)
