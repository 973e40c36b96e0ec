"""Rounds of work as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.domain.ids import short
from holdfast.domain.timeline.rounds import Round, RoundStatus, round_title
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, GREEN, YELLOW, Terminal, visible
from holdfast.interfaces.cli.wording import ago, count, first_line, iso

if TYPE_CHECKING:
    from holdfast.api.rounds import ApprovalStatus

_COLOURS = {
    RoundStatus.ACTIVE: CYAN,
    RoundStatus.MERGED: GREEN,
    RoundStatus.ABANDONED: YELLOW,
}


def moment(at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns / 1e9, tz=UTC)


def approval_words(status: ApprovalStatus, now: datetime) -> str:
    """`round 2, 3 checkpoints, not approved yet, unsaved changes; last approval 2 hours ago`."""
    parts = [round_title(status.active.name), count(status.checkpoints, "checkpoint")]
    parts.append("not approved yet" if status.has_unapproved else "nothing to approve")
    if status.unsaved:
        parts.append("unsaved changes")
    last = status.last_approved_at_ns
    return ", ".join(parts) + (f"; last approval {ago(moment(last), now)}" if last else "")


def show_rounds(
    terminal: Terminal, rounds: Sequence[Round], now: datetime, chosen: str = ""
) -> None:
    """Newest first, one line each, with the way back to what was abandoned."""
    for one in reversed(rounds):
        ended = one.ended_at_ns
        when = moment(one.started_at_ns if ended is None else ended)
        told = ago(when, now) if terminal.for_people else iso(when)
        parts = [
            terminal.paint(round_title(one.name), BOLD),
            terminal.paint(one.status.word, _COLOURS[one.status]),
            told if ended is not None else f"since {told}",
        ]
        if one.head is not None:
            identifier = short(one.head) if terminal.for_people else one.head
            parts.append(terminal.paint(identifier, CYAN))
        if one.message:
            parts.append(visible(first_line(one.message)))
        terminal.line("  ".join(parts))
        if one.status is RoundStatus.ABANDONED and one.head and terminal.for_people:
            way = f"    bring it back: holdfast restore {short(one.head)}{chosen}"
            terminal.line(terminal.paint(way, DIM))
