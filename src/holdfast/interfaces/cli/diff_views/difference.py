"""What the views of a difference share: the changes, their contents, and their headings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT
from holdfast.domain.diff.hunks import Hunk
from holdfast.domain.ids import short
from holdfast.domain.paths import typed
from holdfast.domain.trees.changes import Change, ChangeType
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry, kind_of
from holdfast.engine.compare.changed_content import compare_change, contents_of
from holdfast.engine.compare.content_diff import Content, ContentDiff
from holdfast.engine.compare.ignored_content import IgnoredContent
from holdfast.engine.compare.notebooks import CellChange
from holdfast.engine.vault import Vault
from holdfast.interfaces.cli.wording import size

WORKSPACE = "workspace"
NOT_SHOWN = "not shown: ignored by your rules"


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes between a checkpoint (or nothing) and another one (or the workspace)."""

    vault: Vault
    old: Checkpoint | None
    new: Checkpoint | None
    changes: Sequence[Change]
    context: int = 3
    left_out: Mapping[bytes, str] = field(default_factory=dict)
    ignored: IgnoredContent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ignored", IgnoredContent(self.vault))

    @property
    def new_label(self) -> str:
        return self.new.id if self.new is not None else WORKSPACE

    @property
    def is_across_sessions(self) -> bool:
        old, new = self.old, self.new
        return old is not None and new is not None and old.session_id != new.session_id

    def notes(self, change: Change) -> list[str]:
        """What there is to say about a change besides its lines."""
        said = notes(change)
        if (reason := self.left_out.get(change.path)) is not None:
            when = "now" if change.type is ChangeType.REMOVED else "then"
            said.append(f"left out {when}: {reason}")
        return said

    def has_numbers(self, change: Change) -> bool:
        """Whether the hunks of this change can be restored one by one."""
        return (
            self.new is None
            and isinstance(change.old, FileEntry)
            and isinstance(change.new, FileEntry)
            and change.old_path is None
        )

    def content(self, change: Change) -> ContentDiff | None:
        """None where there is no content to compare: directories, and modes alone."""
        if change.is_directory or _same_content(change):
            return None
        return compare_change(
            self.vault,
            change,
            self.ignored,
            new_in_workspace=self.new is None,
            context=self.context,
        )

    def content_note(self, change: Change, content: ContentDiff) -> str | None:
        """What stands in place of lines; for ignored content with the way to get the file back."""
        note = content_note(content)
        if content.kind != "withheld" or note is None:
            return note
        holder, path = self.old, change.old_path or change.path
        if change.old is None:
            holder, path = self.new, change.path
        if holder is None:
            return note  # the workspace alone has it
        return f"{NOT_SHOWN}; get it back: holdfast restore {short(holder.id)} {typed(path)}"

    def contents(self, change: Change) -> tuple[Content | None, Content | None]:
        """Both sides as they are, for who needs every byte."""
        return contents_of(self.vault, change, new_in_workspace=self.new is None)


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
    if (modes := mode_change(change)) is not None:
        said.append(f"mode {modes[0]:04o} → {modes[1]:04o}")
    if isinstance(old, SymlinkEntry) or isinstance(new, SymlinkEntry):
        said.append("symbolic link")
    return said


def mode_change(change: Change) -> tuple[int, int] | None:
    old, new = mode_of(change.old), mode_of(change.new)
    return (old, new) if old is not None and new is not None and old != new else None


def mode_of(entry: Entry | None) -> int | None:
    return entry.mode if isinstance(entry, (FileEntry, DirectoryEntry)) else None


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


def _same_content(change: Change) -> bool:
    return isinstance(change.old, FileEntry) and change.old.same_content(change.new)
