"""Hunks: the difference of two texts as runs of kept, removed and added lines.

A line ends at `\\n` and nowhere else, so a carriage return is content and any bytes make a text.
Numbers are git's: lines count from 1, and a side without lines names the line before the hunk.

Guarantee: the hunks applied to the old text give the new text exactly. Only the old side's
positions count, so a single hunk can be applied without the others. Not guaranteed: that a change
is one hunk. A very long change is split into adjacent hunks, so that a streaming consumer needs
bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from holdfast.domain.errors import Refused
from holdfast.values.classes import NamedTuple, dataclass

LineKind = Literal[" ", "+", "-"]

HUNK_LINES = 65_536
HUNK_BYTES = 4 * 1024 * 1024
_HEADING_BYTES = 80


class HunkMismatch(Refused, ValueError):
    """The text is not the one that the hunk was made from."""

    code = "hunk_mismatch"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line without its `\\n`; `no_newline` marks a last line that had none."""

    kind: LineKind
    text: bytes
    no_newline: bool = False

    def content(self) -> bytes:
        return self.text if self.no_newline else self.text + b"\n"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Adjacent lines of a difference, and their positions on either side."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]
    heading: bytes = b""

    def header(self) -> bytes:
        """The `@@` line of a unified diff, as git writes it, without a line end."""
        old = _range(self.old_start, self.old_count)
        new = _range(self.new_start, self.new_count)
        return b"@@ -%b +%b @@" % (old, new) + (b" " + self.heading if self.heading else b"")


class Change(NamedTuple):
    """Lines `old_start:old_end` became lines `new_start:new_end`; counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def diff_line(kind: LineKind, line: bytes) -> DiffLine:
    """One line from `split_lines`, with its kind."""
    if line.endswith(b"\n"):
        return DiffLine(kind, line[:-1])
    return DiffLine(kind, line, no_newline=True)


def split_lines(text: bytes) -> list[bytes]:
    """Lines with their `\\n`; only the last may lack it."""
    *complete, rest = text.split(b"\n")
    lines = [line + b"\n" for line in complete]
    if rest:
        lines.append(rest)
    return lines


def lines_in(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """`split_lines` for a text in chunks, holding little more than one chunk."""
    rest = b""
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield line + b"\n"
    if rest:
        yield rest


def hunks_between(
    changes: Iterable[Change],
    old: Sequence[bytes],
    new: Sequence[bytes],
    *,
    context: int,
    lines_before: int = 0,
    heading: bytes = b"",
) -> Iterator[Hunk]:
    """Hunks for changes in order, with `context` kept lines around each.

    `old` and `new` are lines that follow `lines_before` equal ones, under `heading`.
    """
    searched = 0
    for group in _near(changes, 2 * context):
        begin = max(group[0].old_start - context, 0)
        end = min(group[-1].old_end + context, len(old))
        heading = last_heading(old[searched:begin], heading)
        searched = begin
        yield from hunks_of(
            _lines_of(group, old, new, begin, end),
            lines_before + begin + 1,
            lines_before + begin + 1 + group[0].new_start - group[0].old_start,
            heading,
        )


def hunks_of(
    lines: Iterable[DiffLine], old_line: int, new_line: int, heading: bytes = b""
) -> Iterator[Hunk]:
    """One hunk of these lines, split into adjacent ones where it exceeds the limits.

    `old_line` and `new_line` are the numbers of the first line on either side.
    """
    part: list[DiffLine] = []
    size_bytes = 0
    for line in lines:
        if part and (len(part) >= HUNK_LINES or size_bytes + len(line.text) > HUNK_BYTES):
            hunk = _number(part, old_line, new_line, heading)
            yield hunk
            old_line += hunk.old_count
            new_line += hunk.new_count
            part, size_bytes = [], 0
        part.append(line)
        size_bytes += len(line.text)
    if part:
        yield _number(part, old_line, new_line, heading)


def last_heading(lines: Sequence[bytes], default: bytes) -> bytes:
    """The text that git would show after `@@`: the last line that is not indented and starts like a
    name."""
    for line in reversed(lines):
        if line[:1].isalpha() or line[:1] in (b"_", b"$"):
            return line.removesuffix(b"\n")[:_HEADING_BYTES].rstrip(b" \t\r\n")
    return default


def _near(changes: Iterable[Change], distance: int) -> Iterator[list[Change]]:
    """Groups of changes with at most this many equal lines between them."""
    group: list[Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > distance:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _lines_of(
    group: list[Change], old: Sequence[bytes], new: Sequence[bytes], begin: int, end: int
) -> Iterator[DiffLine]:
    for change in group:
        yield from (diff_line(" ", old[i]) for i in range(begin, change.old_start))
        yield from (diff_line("-", old[i]) for i in range(change.old_start, change.old_end))
        yield from (diff_line("+", new[j]) for j in range(change.new_start, change.new_end))
        begin = change.old_end
    yield from (diff_line(" ", old[i]) for i in range(begin, end))


def _number(part: list[DiffLine], old_line: int, new_line: int, heading: bytes) -> Hunk:
    added = sum(line.kind == "+" for line in part)
    removed = sum(line.kind == "-" for line in part)
    old_count, new_count = len(part) - added, len(part) - removed
    return Hunk(
        old_line if old_count else old_line - 1,
        old_count,
        new_line if new_count else new_line - 1,
        new_count,
        tuple(part),
        heading,
    )


def _range(start: int, count: int) -> bytes:
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)


def mismatch(hunk: Hunk, reason: str) -> HunkMismatch:
    """The error for a hunk that does not fit a text."""
    header = hunk.header().decode("utf-8", "replace")
    return HunkMismatch(f"hunk {header} {reason}", hint="compare again: the text has changed")
