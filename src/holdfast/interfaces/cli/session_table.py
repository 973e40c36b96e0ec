"""The sessions of a workspace as a table, or one line each in a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.domain.sessions import SessionStatus
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, GREEN, Terminal, visible
from holdfast.interfaces.cli.text_layout import cell_width, padded
from holdfast.interfaces.cli.wording import ago, count, iso, shortened

if TYPE_CHECKING:
    from holdfast.api.sessions import SessionSummary

_NAMES = (" ", "title", "agent", "status", "checkpoints", "unapproved", "last activity", "id")
_LONGEST_TITLE = 48
_GAP = "  "


def show_sessions(terminal: Terminal, found: Sequence[SessionSummary], now: datetime) -> None:
    if terminal.for_people:
        _show_table(terminal, found, now)
        return
    for one in found:
        head = "(HEAD) " if one.has_head else ""
        at = iso(_moment(one.last_activity_ns))
        title = visible(one.session.title or "")
        terminal.line(
            f"{visible(one.session.id)} {one.status.value} {visible(one.session.agent or '-')} "
            f"{one.checkpoints} {one.unapproved} {at} {head}{title}".rstrip()
        )


def _show_table(terminal: Terminal, found: Sequence[SessionSummary], now: datetime) -> None:
    rows = [_row(one, now) for one in found]
    widths = [
        max(cell_width(row[place]) for row in (_NAMES, *rows)) for place in range(len(_NAMES))
    ]
    if sum(widths) + len(_GAP) * len(widths) > terminal.width:
        _show_list(terminal, found, now)
        return
    heading = _GAP.join(padded(name, width) for name, width in zip(_NAMES, widths, strict=True))
    terminal.line(terminal.paint(heading.rstrip(), DIM))
    for one, row in zip(found, rows, strict=True):
        cells = [padded(text, width) for text, width in zip(row, widths, strict=True)]
        cells[0] = terminal.paint(cells[0], BOLD, CYAN)
        if one.status is SessionStatus.ACTIVE:
            cells[3] = terminal.paint(cells[3], GREEN)
        cells[-1] = terminal.paint(cells[-1].rstrip(), DIM)
        terminal.line(_GAP.join(cells))


def _show_list(terminal: Terminal, found: Sequence[SessionSummary], now: datetime) -> None:
    """Where columns do not fit, what there is to say stands below the title."""
    for one in found:
        mark = "▶ " if one.has_head else "  "
        title = shortened(visible(one.session.title or one.session.id), terminal.width - 2)
        terminal.line(terminal.paint(mark, BOLD, CYAN) + terminal.paint(title, BOLD))
        agent = f"{visible(one.session.agent)}, " if one.session.agent else ""
        told = f"{agent}{one.status.value}, {ago(_moment(one.last_activity_ns), now)}"
        held = f"{count(one.checkpoints, 'checkpoint')}, {one.unapproved} not approved"
        for line in (told, held, visible(one.session.id)):
            terminal.line(terminal.paint(f"    {shortened(line, terminal.width - 4)}", DIM))


def _row(one: SessionSummary, now: datetime) -> tuple[str, ...]:
    return (
        "▶" if one.has_head else "",
        shortened(visible(one.session.title or ""), _LONGEST_TITLE),
        visible(one.session.agent or ""),
        one.status.value,
        f"{one.checkpoints:,}",
        f"{one.unapproved:,}",
        ago(_moment(one.last_activity_ns), now),
        visible(one.session.id),
    )


def _moment(at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns / 1e9, tz=UTC)
