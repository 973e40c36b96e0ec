"""The timeline in a terminal: lanes as in a commit graph, one event per line; and its rounds.

    ●  checkpoint, in the colour of its confidence      ↩  restore, undo, redo, reset
    ✔  approval      beside the graph: messages, annotations, edits

Lanes that do not fit are left out and text is shortened, so that an event is never more than a
line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from holdfast.domain.ids import SessionId, short
from holdfast.domain.restore.selections import selected_words
from holdfast.domain.sessions import Round, RoundStatus, Session, round_name, round_title
from holdfast.domain.timeline.timeline import Event, EventType, Outline, Timeline
from holdfast.interfaces.cli.checkpoint_view import confidence_colour, given_confidence, shown_id
from holdfast.interfaces.cli.log_table import session_mark
from holdfast.interfaces.cli.terminal import (
    BLUE,
    BOLD,
    CYAN,
    DIM,
    GREEN,
    MAGENTA,
    RED,
    YELLOW,
    Terminal,
    visible,
)
from holdfast.interfaces.cli.text_layout import cell_width, cut
from holdfast.interfaces.cli.wording import count, headline, moment, percent, when_words

_LANE_COLOURS = (CYAN, MAGENTA, BLUE, YELLOW, GREEN, RED)
_SHARE_OF_WIDTH = 3
_RESTORING = (EventType.RESTORE, EventType.UNDO, EventType.REDO, EventType.RESET)
_LEAST_TEXT = 20
_ROUND_COLOURS = {
    RoundStatus.ACTIVE: CYAN,
    RoundStatus.MERGED: GREEN,
    RoundStatus.ABANDONED: YELLOW,
}


def show_timeline(
    terminal: Terminal,
    timeline: Timeline,
    now: datetime,
    *,
    graph: bool,
    sessions: Mapping[SessionId, Session],
) -> None:
    """Newest first; without `graph` the lanes are not drawn. With several `sessions`, an event
    names its session if it differs from the event above."""
    above: SessionId | None = None
    lanes = min(timeline.lanes, max(terminal.width // _SHARE_OF_WIDTH // 2, 1)) if graph else 0
    for event in timeline.events:
        if graph and event.joins:
            terminal.line(_join_row(terminal, event, lanes))
        margin = _lanes(terminal, event, lanes) if graph else _mark(terminal, event)
        used = 2 * lanes if graph else 2
        words = list(_words(terminal, event, now))
        if event.session_id is not None:
            if event.session_id != above or not terminal.for_people:
                words.insert(1, (_session(terminal, sessions[event.session_id]), (CYAN,)))
            above = event.session_id
        terminal.line(f"{margin}{_fitted(terminal, words, terminal.width - used)}")
    if timeline.next is not None and terminal.for_people:
        terminal.line("… to show more: -n 0", DIM)


def _session(terminal: Terminal, session: Session) -> str:
    known = session_mark(session) if terminal.for_people else visible(session.id)
    return f"{{{known}}}"


def _lanes(terminal: Terminal, event: Event, count: int) -> str:
    cells = []
    for lane in range(count):
        if lane == event.lane:
            cells.append(_mark(terminal, event))
        else:
            line = "│" if lane in event.passing else " "
            cells.append(terminal.paint(line, _colour(lane)) + " ")
    return "".join(cells)


def _join_row(terminal: Terminal, event: Event, count: int) -> str:
    """The row above an event in which other lanes end: `├─┴─╯`."""
    own, last = event.lane or 0, max(event.joins)
    text = ""
    for lane in range(count):
        inside = own <= lane <= last
        if lane == own:
            sign = "├"
        elif lane in event.joins:
            sign = "╯" if lane == last else "┴"
        elif lane in event.passing:
            sign = "┼" if inside else "│"
        else:
            sign = "─" if inside else " "
        gap = "─" if own <= lane < last else " "
        text += terminal.paint(sign + gap, _colour(own if inside else lane))
    return text.rstrip()


def _mark(terminal: Terminal, event: Event) -> str:
    if event.type is EventType.APPROVE:
        return terminal.paint("✔", BOLD, GREEN) + " "
    if event.type in _RESTORING:
        return terminal.paint("↩", BOLD, BLUE) + " "
    if event.checkpoint is not None:
        sure = given_confidence(event.checkpoint.kind, event.checkpoint.confidence)
        return terminal.paint("●", *([] if sure is None else [confidence_colour(sure)])) + " "
    return terminal.paint("·", DIM) + " "


def _words(
    terminal: Terminal, event: Event, now: datetime
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The text of an event, in coloured pieces."""
    when = when_words(terminal, moment(event.at_ns), now)
    if event.checkpoint is not None:
        yield from _about_checkpoint(terminal, event, event.checkpoint, when)
    elif event.ended is not None:
        yield f"{round_title(event.ended.name)} approved", (BOLD, GREEN)
        yield when, (DIM,)
        if event.ended.message:
            yield headline(event.ended.message), ()
    elif event.message is not None:
        gone = event.message.rolled_back_by is not None
        yield f"{event.message.role.value}", (DIM, CYAN) if gone else (CYAN,)
        yield when, (DIM,)
        if gone:
            yield "(rolled back)", (DIM,)
        yield headline(event.message.content), (DIM,) if gone else ()
    elif event.annotation is not None:
        yield f"note on {shown_id(terminal, event.annotation.checkpoint_id)}", (MAGENTA,)
        yield when, (DIM,)
        yield headline(event.annotation.text), ()
    elif event.activity is not None:
        yield f"{event.type.value} {event.activity.status.value}", (MAGENTA,)
        yield when, (DIM,)
        yield headline(event.activity.reason), ()


def _about_checkpoint(
    terminal: Terminal, event: Event, row: Outline, when: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield shown_id(terminal, row.id), (CYAN,)
    if event.is_head:
        yield "(HEAD)", (BOLD, CYAN)
    if event.is_approved:
        yield "(approved)", (BOLD, GREEN)
    if row.name:
        yield f"[{visible(row.name)}]", (BOLD,)
    yield when, (DIM,)
    if event.type is EventType.CHECKPOINT:
        yield row.kind.value, (RED,) if row.kind.value == "risky" else (DIM,)
        if (sure := given_confidence(row.kind, row.confidence)) is not None:
            yield percent(sure), (confidence_colour(sure),)
    if row.partial:
        yield "(partial)", (YELLOW,)
    yield headline(row.reasoning), ()
    if row.selected is not None and row.selected.paths:
        yield visible(selected_words(row.selected)), (DIM,)
    if event.type is EventType.RESET:
        yield f"({round_title(round_name(row.round - 1))} abandoned)", (YELLOW,)


def _fitted(terminal: Terminal, words: Iterable[tuple[str, tuple[str, ...]]], width: int) -> str:
    """On one line; on a terminal at most that wide."""
    left = max(width, _LEAST_TEXT) if terminal.for_people else 1 << 30
    parts: list[str] = []
    for text, codes in words:
        room = left - (1 if parts else 0)
        if room < 1:
            break
        shown = cut(text, room)
        left = room - cell_width(shown)
        parts.append(terminal.paint(shown, *codes))
    return " ".join(parts)


def _colour(lane: int) -> str:
    return _LANE_COLOURS[lane % len(_LANE_COLOURS)]


def show_rounds(terminal: Terminal, rounds: Sequence[Round], now: datetime, chosen: str) -> None:
    """Newest first, one line each, with the command that restores an abandoned round. `chosen` is
    the `--session` option for that command."""
    for one in reversed(rounds):
        ended = one.ended_at_ns
        at = moment(one.started_at_ns if ended is None else ended)
        when = when_words(terminal, at, now)
        parts = [
            terminal.paint(round_title(one.name), BOLD),
            terminal.paint(one.status.word, _ROUND_COLOURS[one.status]),
            when if ended is not None else f"since {when}",
        ]
        if one.checkpoints is not None:
            parts.append(count(one.checkpoints, "checkpoint"))
        if one.head is not None:
            parts.append(terminal.paint(shown_id(terminal, one.head), CYAN))
        if one.message:
            parts.append(headline(one.message))
        terminal.line("  ".join(parts))
        if one.status is RoundStatus.ABANDONED and one.head and terminal.for_people:
            terminal.line(f"    to restore it: holdfast restore {short(one.head)}{chosen}", DIM)
