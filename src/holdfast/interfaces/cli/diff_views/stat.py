"""A difference in numbers: added and removed lines a path, with a bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.trees.changes import Change
from holdfast.interfaces.cli.diff_views.difference import content_note, notes
from holdfast.interfaces.cli.terminal import DIM, GREEN, RED, Terminal
from holdfast.interfaces.cli.wording import count

if TYPE_CHECKING:
    from holdfast.api.diffs import Difference


_BAR = 30
_SHORTEST_BAR = 10
_BESIDES = 10
"""Cells of a row for spaces, the separator and the number."""


class LineCounts(NamedTuple):
    added: int
    removed: int
    note: str | None


def show_stat(terminal: Terminal, difference: Difference) -> None:
    rows = [(_name(terminal, change), _count(difference, change)) for change in difference.changes]
    widest = max((len(name) for name, _ in rows), default=0)
    most = max((counts.added + counts.removed for _, counts in rows), default=0)
    bar = _BAR
    if terminal.for_people:  # the bars give way first, then the beginnings of long paths
        bar = min(_BAR, max(_SHORTEST_BAR, terminal.width - widest - _BESIDES))
        widest = min(widest, max(terminal.width - bar - _BESIDES, _SHORTEST_BAR))
    for name, counts in rows:
        shown = name if len(name) <= widest else f"…{name[1 - widest :]}"
        terminal.line(f" {shown:<{widest}} | {_row(terminal, counts, most, bar)}")
    _total(terminal, [counts for _, counts in rows])


def _count(difference: Difference, change: Change) -> LineCounts:
    content = difference.content(change)
    if content is None:
        return LineCounts(0, 0, ", ".join(notes(change)) or change.type.value)
    if (note := content_note(content)) is not None:
        return LineCounts(0, 0, note)
    added = removed = 0
    for hunk in content.hunks():
        more = sum(line.kind == "+" for line in hunk.lines)
        added += more
        removed += sum(line.kind == "-" for line in hunk.lines)
    return LineCounts(added, removed, None)


def _row(terminal: Terminal, counts: LineCounts, most: int, bar: int) -> str:
    if counts.note is not None:
        return terminal.paint(counts.note, DIM)
    lines = counts.added + counts.removed
    scale = min(1.0, bar / most) if most else 0.0
    plus = terminal.paint("+" * _share(counts.added, scale), GREEN)
    minus = terminal.paint("-" * _share(counts.removed, scale), RED)
    return f"{lines:>5} {plus}{minus}"


def _share(lines: int, scale: float) -> int:
    return max(round(lines * scale), 1) if lines else 0


def _name(terminal: Terminal, change: Change) -> str:
    path = terminal.path(change.path) + ("/" if change.is_directory else "")
    return path if change.old_path is None else f"{terminal.path(change.old_path)} → {path}"


def _total(terminal: Terminal, rows: Sequence[LineCounts]) -> None:
    added, removed = sum(row.added for row in rows), sum(row.removed for row in rows)
    terminal.line(
        f" {count(len(rows), 'path')} changed, {count(added, 'line')} added, "
        f"{count(removed, 'line')} removed"
    )
