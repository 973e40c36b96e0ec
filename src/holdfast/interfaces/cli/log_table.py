"""The history as a table, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import short
from holdfast.interfaces.cli.checkpoint_view import FAIRLY_SURE, SURE, title
from holdfast.interfaces.cli.terminal import Terminal, visible
from holdfast.interfaces.cli.wording import ago, percent

_NARROW = 90


def rich_console(terminal: Terminal) -> Console:
    """rich, told by us and not by its own guesses what the terminal can do."""
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


def show_table(
    terminal: Terminal, found: Sequence[Checkpoint], head: str | None, now: datetime
) -> None:
    wide = terminal.width >= _NARROW
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", width=1)
    table.add_column("id", no_wrap=True)
    table.add_column("when", no_wrap=True)
    if wide:
        table.add_column("kind", no_wrap=True)
    table.add_column("sure", justify="right", no_wrap=True)
    table.add_column("files", justify="right", no_wrap=True)
    if wide:
        table.add_column("changes", no_wrap=True)
    table.add_column("reason", ratio=1, overflow="fold")
    for one in found:
        table.add_row(*_row(one, one.id == head, now, wide=wide))
    rich_console(terminal).print(table)


def _row(one: Checkpoint, is_head: bool, now: datetime, *, wide: bool) -> list[Text]:
    faint = "dim" if one.kind.is_record else ""
    row = [
        Text("▶" if is_head else "", style="bold cyan"),
        Text(short(one.id), style="dim cyan" if faint else "cyan"),
        Text(ago(one.created_at, now), style=faint),
    ]
    if wide:
        row.append(Text(one.kind.value, style=faint))
    row += [_confidence(one.intent.confidence), Text(f"{one.files:,}", style=faint)]
    if wide:
        row.append(_changes(one))
    reason = Text(style=faint)
    if one.name:
        reason.append(visible(one.name), style="bold").append("  ")
    reason.append(title(one))
    if one.partial:
        reason.append("  (saved in part)", style="yellow")
    return [*row, reason]


def _confidence(confidence: float) -> Text:
    colour = "color(208)"
    if confidence >= FAIRLY_SURE:
        colour = "green" if confidence >= SURE else "yellow"
    return Text("● ", style=colour).append(percent(confidence), style="default")


def _changes(one: Checkpoint) -> Text:
    text = Text()
    for number, sign, style in (
        (one.changed.added, "+", "green"),
        (one.changed.modified, "~", "yellow"),
        (one.changed.removed, "-", "red"),
    ):
        if number:
            text.append(f"{sign}{number:,} ", style=style)
    return text
