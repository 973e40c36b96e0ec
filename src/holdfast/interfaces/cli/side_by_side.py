"""Old and new side by side, with syntax highlighting.

Each hunk is a separate table, so that a long difference appears while it is computed. Control
characters are made visible before the text is coloured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from holdfast.domain.diff.hunks import Hunk
from holdfast.domain.trees.changes import Change
from holdfast.interfaces.cli.diff_view import (
    all_notes,
    cell_words,
    changed_path,
    full_content_note,
    notebook_notes,
    show_difference,
    split_type_changes,
    with_labels,
)
from holdfast.interfaces.cli.terminal import Terminal, visible, visible_bytes, visible_line
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.api.diffs import ContentDiff, Difference


_LONGEST_COLOURED_HUNK = 2_000
_TAB = 8
_NARROWEST = 70


class ChangeStyle(NamedTuple):
    """The style of a changed line on one side, with and without colours."""

    sign: str
    colour: str
    background: str


class Theme(NamedTuple):
    syntax: str
    removed: ChangeStyle
    added: ChangeStyle


_DARK = Theme(
    "ansi_dark", ChangeStyle("-", "red", "on #3b1419"), ChangeStyle("+", "green", "on #12331c")
)
_LIGHT = Theme(
    "ansi_light", ChangeStyle("-", "red", "on #ffd7d7"), ChangeStyle("+", "green", "on #d7ffd7")
)


class Side(NamedTuple):
    """A line on one side, and whether it differs."""

    number: int
    text: Text
    changed: bool


def show_side_by_side(terminal: Terminal, difference: Difference) -> None:
    """If the terminal is too narrow for two columns, print one below the other."""
    if terminal.width < _NARROWEST:
        show_difference(terminal, difference)
        return
    console = _console(terminal)
    theme = _LIGHT if terminal.has_light_background else _DARK
    for change in split_type_changes(difference.changes):
        _heading(terminal, console, difference, change)
        content = difference.content(change)
        if content is None:
            continue
        note = full_content_note(difference, change, content)
        if note is not None:
            console.print(Text(f"  {visible(note)}", style="dim"))
            continue
        name = visible_bytes(change.path)
        for caption, hunk in _captioned(difference, change, content):
            console.print(Text(caption, style="cyan"))
            if hunk is not None:
                console.print(_table(hunk, name, terminal.width, theme))


def _console(terminal: Terminal) -> Console:
    """A rich console with explicit settings instead of its own guesses about the terminal."""
    return Console(
        file=terminal.out,
        force_terminal=terminal.out_colour,
        color_system="auto" if terminal.out_colour else None,
        no_color=not terminal.out_colour,
        width=terminal.width,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _heading(terminal: Terminal, console: Console, difference: Difference, change: Change) -> None:
    text = Text(f"{change.type.value} ", style="bold")
    text.append(changed_path(terminal, change), style="bold cyan")
    if said := all_notes(difference, change):
        text.append(f"  ({visible(', '.join(said))})", style="dim")
    console.print(text)


def _captioned(
    difference: Difference, change: Change, content: ContentDiff
) -> Iterator[tuple[str, Hunk | None]]:
    """Hunks with captions; some changes have only captions."""
    if content.kind != "notebook":
        for label, hunk in with_labels(difference, change, content.hunks()):
            yield label + visible_line(hunk.header()), hunk
        return
    for note in notebook_notes(content):
        yield f"  {note}", None
    for cell in content.cells:
        if not cell.hunks:
            yield cell_words(cell), None
        for hunk in cell.hunks:
            yield cell_words(cell), hunk


def _table(hunk: Hunk, name: str, width: int, theme: Theme) -> Table:
    last = max(hunk.old_start + hunk.old_count, hunk.new_start + hunk.new_count)
    digits = max(len(str(last)), 2)
    column = max((width - 2 * (digits + 3) - 1) // 2, 10)
    table = Table.grid(padding=(0, 1, 0, 0))
    for _ in range(2):
        table.add_column(width=digits + 1, no_wrap=True)
        table.add_column(width=column, overflow="fold")
    for old, new in _pairs(hunk, name, theme.syntax):
        table.add_row(
            *_cells(old, theme.removed, digits, column), *_cells(new, theme.added, digits, column)
        )
    return table


def _cells(side: Side | None, style: ChangeStyle, digits: int, width: int) -> tuple[Text, Text]:
    if side is None:
        return Text(""), Text("")
    if not side.changed:
        return Text(f"{side.number:>{digits}}", style="dim"), side.text
    text = side.text.copy()
    text.pad_right(max(width - text.cell_len, 0))
    text.stylize(style.background)
    return Text(f"{side.number:>{digits}}{style.sign}", style=style.colour), text


def _pairs(hunk: Hunk, name: str, syntax: str) -> Iterator[tuple[Side | None, Side | None]]:
    """Pairs of lines: unchanged lines twice, changed lines in order."""
    old = _sides(hunk, "-", hunk.old_start, name, syntax)
    new = _sides(hunk, "+", hunk.new_start, name, syntax)
    removed: list[Side] = []
    added: list[Side] = []
    for line in hunk.lines:
        if line.kind == "-":
            removed.append(next(old))
        elif line.kind == "+":
            added.append(next(new))
        else:
            yield from zip_longest(removed, added)
            removed, added = [], []
            yield next(old), next(new)
    yield from zip_longest(removed, added)


def _sides(hunk: Hunk, kind: str, start: int, name: str, syntax: str) -> Iterator[Side]:
    lines = [line for line in hunk.lines if line.kind in (" ", kind)]
    texts = _coloured([visible_line(line.text).expandtabs(_TAB) for line in lines], name, syntax)
    for number, (line, text) in enumerate(zip(lines, texts, strict=True), start):
        yield Side(number, text, line.kind == kind)


def _coloured(lines: Sequence[str], name: str, theme: str) -> list[Text]:
    """The lines with syntax highlighting. They are highlighted together, so that strings and
    comments over several lines are right."""
    if len(lines) > _LONGEST_COLOURED_HUNK:
        return [Text(line) for line in lines]
    code = "\n".join(lines)
    lexer = Syntax.guess_lexer(name, code)
    syntax = Syntax("", lexer, theme=theme, background_color="default")
    coloured = syntax.highlight(code).split("\n", allow_blank=True)
    # A lexer may drop or add lines at the end. Correct text is worth more than colours.
    if [text.plain for text in coloured[: len(lines)]] != list(lines):
        return [Text(line) for line in lines]
    return list(coloured[: len(lines)])
