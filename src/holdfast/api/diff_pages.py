"""Differences and files in pieces that fit an answer, whatever their size.

    files: a page in order; each file with its first hunks, as long as the page has room
    hunks: from any hunk and line on; long lines are shortened and counted

The cursor of files is the last path. The cursor of hunks is `HUNK:LINE`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT, numbered
from holdfast.domain.errors import UsageError
from holdfast.domain.paths import from_text, to_text

if TYPE_CHECKING:
    from holdfast.api.diffs import Difference
    from holdfast.api.views.pages import (
        DiffPageView,
        FileDiffView,
        FileView,
        PagedHunkView,
    )
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.diff.hunk_choice import NumberedHunk
    from holdfast.domain.trees.changes import Change
    from holdfast.domain.trees.entries import FileEntry

_MOST_LINES = 2_000
_MOST_LINES_OF_PAGE = 10_000
_LONGEST_LINE = 5_000
_LARGEST_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class HunkPosition:
    """Where the next piece starts: the number of a hunk, and a line in it."""

    hunk: int = 1
    line: int = 0

    @classmethod
    def parse(cls, text: str | None) -> HunkPosition:
        if text is None:
            return cls()
        hunk, _, line = text.partition(":")
        if not (hunk.isascii() and hunk.isdigit() and line.isascii() and line.isdigit()):
            raise UsageError(
                f"{text[:40]!r} is not a position in a file", hint="pass hunks_next as it was given"
            )
        return cls(int(hunk[:9]), int(line[:9]))

    def __str__(self) -> str:
        return f"{self.hunk}:{self.line}"


def diff_page(
    workspace: Workspace,
    old: Checkpoint | None,
    new: Checkpoint | None,
    *,
    paths: Sequence[bytes] = (),
    limit: int,
    cursor: str | None = None,
    hunks_from: str | None = None,
    context: int = DEFAULT_CONTEXT,
) -> DiffPageView:
    """The differences between two checkpoints; None for `new` means the current workspace."""
    from holdfast.api.views.changes import difference_view

    start = HunkPosition.parse(hunks_from)
    if hunks_from is not None and len(paths) != 1:
        raise UsageError("hunks_from needs one path", hint="add path=FILE")
    with workspace.contents.explain_deletion((old, new), "compared"):
        found = workspace.diffs.compare(old, new, paths=paths, context=context)
        changes = sorted(found.changes, key=lambda one: one.path)
        if cursor is not None:
            last = from_text(cursor)
            changes = [one for one in changes if one.path > last]
        files: list[FileDiffView] = []
        room = _MOST_LINES_OF_PAGE
        for change in changes[:limit]:
            view = _file(found, change, start, min(room, _MOST_LINES))
            room -= sum(len(hunk["lines"]) for hunk in view["hunks"])
            files.append(view)
    more = len(changes) > limit
    view_of_ends = difference_view(found)
    page: DiffPageView = {
        "from": view_of_ends["from"],
        "to": view_of_ends["to"],
        "files": files,
        "total_files": len(found.changes),
        "total_directories": sum(one.is_directory for one in found.changes),
        "next": files[-1]["path"] if more else None,
    }
    if "reasons" in view_of_ends:
        page["reasons"] = view_of_ends["reasons"]
    return page


def _file(found: Difference, change: Change, start: HunkPosition, most: int) -> FileDiffView:
    from holdfast.api.views.changes import compared_view

    content = found.content(change)
    hunks = _Hunks(start, most)
    if content is not None and content.kind in ("text", "notebook"):
        hunks.take(numbered(content.hunks()))
    whole = hunks.next is None and start == HunkPosition()
    return {
        **compared_view(change, found.left_out.get(change.path), content),
        "hunks": hunks.views,
        "hunks_next": None if hunks.next is None else str(hunks.next),
        "cut_lines": hunks.cut_lines,
        "added_lines": hunks.added if whole else None,
        "removed_lines": hunks.removed if whole else None,
        "old_size_bytes": None if content is None else content.old_size_bytes,
        "new_size_bytes": None if content is None else content.new_size_bytes,
        "restorable": found.has_numbers(change),
    }


class _Hunks:
    """Collects hunks from a position until there is no more room."""

    def __init__(self, start: HunkPosition, most: int) -> None:
        self._start, self._left = start, most
        self.views: list[PagedHunkView] = []
        self.next: HunkPosition | None = None
        self.cut_lines = self.added = self.removed = 0

    def take(self, hunks: Iterator[NumberedHunk]) -> None:
        for one in hunks:
            if one.number < self._start.hunk:
                continue
            first = self._start.line if one.number == self._start.hunk else 0
            if self._left <= 0:
                self.next = HunkPosition(one.number, first)
                return
            self._take_one(one, first)
            if self.next is not None:
                return

    def _take_one(self, one: NumberedHunk, first: int) -> None:
        from holdfast.api.views.changes import numbered_hunk_view

        view = numbered_hunk_view(one)
        lines = view["lines"]
        taken = lines[first : first + self._left]
        if first + len(taken) < len(lines):
            self.next = HunkPosition(one.number, first + len(taken))
        self._left -= len(taken)
        self.added += sum(line.startswith("+") for line in taken)
        self.removed += sum(line.startswith("-") for line in taken)
        self.cut_lines += sum(len(line) > _LONGEST_LINE for line in taken)
        view["lines"] = [line[:_LONGEST_LINE] for line in taken]
        self.views.append({**view, "first_line": first, "total_lines": len(lines), "colours": None})


def file_piece(
    workspace: Workspace, found: Checkpoint, path: bytes, entry: FileEntry, offset: int
) -> FileView:
    """A piece of a file in a checkpoint. Text is not cut inside a character."""
    content = b"".join(range_of(workspace.contents.read(entry), offset, _LARGEST_PIECE))
    encoding = "utf-8"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and len(content) - error.start < 4:
            content = content[: error.start]
            text = content.decode("utf-8")
        else:
            text, encoding = b64encode(content).decode(), "base64"
    end = offset + len(content)
    return {
        "checkpoint": found.id,
        "path": to_text(path),
        "mode": entry.mode,
        "hash": entry.digest.hex(),
        "size_bytes": entry.size,
        "offset": offset,
        "encoding": encoding,
        "content": text,
        "next": end if len(content) > 0 and end < entry.size else None,
        "colours": None,
    }


def range_of(chunks: Iterator[bytes], offset: int, length: int) -> Iterator[bytes]:
    """`length` bytes from `offset` of a content that comes in chunks."""
    for chunk in chunks:
        if offset >= len(chunk):
            offset -= len(chunk)
            continue
        piece = chunk[offset : offset + length]
        offset, length = 0, length - len(piece)
        yield piece
        if not length:
            return
