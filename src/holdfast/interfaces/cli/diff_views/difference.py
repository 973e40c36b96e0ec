"""What the views of a difference share: notes on changes, and the labels of hunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT
from holdfast.domain.diff.hunks import Hunk
from holdfast.domain.ids import short
from holdfast.domain.paths import typed
from holdfast.domain.trees.changes import Change, ChangeType
from holdfast.domain.trees.entries import FileEntry, SymlinkEntry, kind_of
from holdfast.interfaces.cli.wording import size

if TYPE_CHECKING:
    from holdfast.api.diffs import CellChange, ContentDiff, Difference

NOT_SHOWN = "not shown: ignored by your rules"


def all_notes(difference: Difference, change: Change) -> list[str]:
    """Everything to say about a change besides its lines."""
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
        return note  # the workspace alone has it
    return f"{NOT_SHOWN}; get it back: holdfast restore {short(holder.id)} {typed(path)}"


def one_kind_each(changes: Sequence[Change]) -> Iterator[Change]:
    """A path that became another kind of thing, as the removal of one and the arrival of one."""
    for change in changes:
        if change.old is None or change.new is None or kind_of(change.old) == kind_of(change.new):
            yield change
            continue
        yield Change(change.path, ChangeType.REMOVED, change.old, None)
        yield Change(change.path, ChangeType.ADDED, None, change.new)


def with_labels(
    difference: Difference, change: Change, hunks: Iterable[Hunk]
) -> Iterator[tuple[str, Hunk]]:
    """Each hunk with the number to restore it by; without one where there is no choice. Another
    context makes other hunks, so the label says which it was."""
    how = "" if difference.context == DEFAULT_CONTEXT else f" of -U{difference.context}"
    coming = iter(hunks)
    first = list(islice(coming, 2))
    wanted = difference.has_numbers(change) and len(first) > 1
    for number, hunk in enumerate(chain(first, coming), 1):
        yield f"hunk {number}{how}: " if wanted else "", hunk


def notes(change: Change) -> list[str]:
    """What a change itself says besides its lines."""
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
    """What stands in place of lines when there are none to show."""
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
    """What changed in a notebook besides its cells."""
    if content.notebook_metadata_changed:
        return ["notebook metadata changed"]
    return [] if content.cells else ["no cell changed, only the way the file is written"]


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
