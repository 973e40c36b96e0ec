"""The history as a table, for a terminal.

It uses no table library, because loading one would take longer than the rest of `log`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import SessionId, short
from holdfast.domain.sessions import Session
from holdfast.interfaces.cli.checkpoint_view import confidence_colour, given_confidence, title
from holdfast.interfaces.cli.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Terminal,
    unpainted,
    visible,
)
from holdfast.interfaces.cli.text_layout import Part, cell_width, cut, padded, wrapped
from holdfast.interfaces.cli.wording import ago, percent, shortened

_GAP = "  "
_NARROW = 90
_ENOUGH_FOR_REASON = 40
_MOVABLE = ("git", "session")
"""Shown after or above the reason if columns would leave it too little room."""
_NARROWER = 66
_LEAST_FOR_REASON = 20
_SHORT = (" ", "id", "when", "sure", "session")
_LONGEST_MARK = 24
_INDENT = "     "
_RIGHT = ("sure", "files")
_ONLY_WIDE = ("kind", "changes")


Row = dict[str, list[Part]]


def show_table(
    terminal: Terminal,
    found: Sequence[Checkpoint],
    head: str | None,
    now: datetime,
    sessions: Mapping[SessionId, Session],
    places: Mapping[str, str],
    total: int,
) -> None:
    """With `sessions`, each row shows its session. `places` are git positions by checkpoint.
    `total` includes unlisted checkpoints."""
    rows = [_row(one, one.id == head, now, sessions) for one in found]
    _add_places(rows, found, places)
    if not any(row["sure"] for row in rows):
        for row in rows:
            del row["sure"]
    if terminal.width < _NARROWER:
        _show_list(terminal, found, rows)
        return
    names = [name for name in rows[0] if terminal.width >= _NARROW or name not in _ONLY_WIDE]
    widths = {name: max(len(name), *(_width(row[name]) for row in rows)) for name in names}
    for name in (one for one in _MOVABLE if one in names):
        if terminal.width - _used_width(widths) < _ENOUGH_FOR_REASON:
            del widths[name]
            names.remove(name)
    left = _used_width(widths)
    heading = _GAP.join(padded(name, widths[name], right=name in _RIGHT) for name in names)
    terminal.line(f"{heading}{_GAP}reason ({total:,} in total)", DIM)
    above: SessionId | None = None
    for one, row in zip(found, rows, strict=True):
        if sessions and "session" not in names and one.session_id != above:
            text = _session_heading(sessions[one.session_id], terminal.width)
            terminal.line(text, BOLD)
        above = one.session_id
        cells = [_cell(terminal, row[name], widths[name], right=name in _RIGHT) for name in names]
        reason = _reason(terminal, one, max(terminal.width - left, _LEAST_FOR_REASON))
        if "git" not in names:
            reason = _with_place(terminal, reason, row, terminal.width - left)
        terminal.line(_GAP.join([*cells, reason[0]]))
        for line in reason[1:]:
            terminal.line(" " * left + line)


def _used_width(widths: Mapping[str, int]) -> int:
    """The width of the columns before the reason."""
    return sum(widths.values()) + len(_GAP) * len(widths)


def _session_heading(session: Session, width: int) -> str:
    """The heading above a session's rows, if a column for it would leave the reason no room."""
    agent = f" ({visible(session.agent)})" if session.agent and session.title else ""
    known = visible(session.title or f"{session.agent or 'session'} {session.id}")
    return f"{_GAP} {cut(known, width - len(_GAP) - 1 - cell_width(agent))}{agent}"


def _with_place(terminal: Terminal, reason: list[str], row: Row, width: int) -> list[str]:
    """The git position, after the reason or below it."""
    place = "".join(part.text for part in row.get("git", []))
    if not place:
        return reason
    text = terminal.paint(place, DIM)
    if cell_width(unpainted(reason[-1])) + len(_GAP) + cell_width(place) <= width:
        return [*reason[:-1], f"{reason[-1]}{_GAP}{text}"]
    return [*reason, text]


def _show_list(terminal: Terminal, found: Sequence[Checkpoint], rows: Sequence[Row]) -> None:
    """The reason goes below if columns leave no room for it."""
    for one, row in zip(found, rows, strict=True):
        shown = [name for name in _SHORT if name in row]
        cells = [_cell(terminal, row[name], 1 if name == " " else 0) for name in shown]
        terminal.line(_GAP.join(cells))
        reason = _reason(terminal, one, terminal.width - len(_INDENT))
        for line in _with_place(terminal, reason, row, terminal.width - len(_INDENT)):
            terminal.line(_INDENT + line)


def session_mark(session: Session) -> str:
    """A session in one column: its title, else its agent and id."""
    if session.title:
        return shortened(visible(session.title), _LONGEST_MARK)
    agent = f"{visible(session.agent)} " if session.agent else ""
    return shortened(f"{agent}{visible(session.id)}", _LONGEST_MARK)


def _row(
    one: Checkpoint, is_head: bool, now: datetime, sessions: Mapping[SessionId, Session]
) -> Row:
    faint = (DIM,) if one.kind.is_record else ()
    marked = {"session": [Part(session_mark(sessions[one.session_id]), faint)]} if sessions else {}
    return {
        " ": [Part("▶" if is_head else "", (BOLD, CYAN))],
        "id": [Part(short(one.id), (*faint, CYAN))],
        "when": [Part(ago(one.created_at, now), faint)],
        "kind": [Part(one.kind.value, faint)],
        "sure": _confidence(one, faint),
        "files": [Part(f"{one.files:,}", faint)],
        "changes": _changes(one),
        **marked,
    }


def _confidence(one: Checkpoint, faint: tuple[str, ...]) -> list[Part]:
    """Empty if no confidence was given."""
    sure = given_confidence(one.kind, one.intent.confidence)
    if sure is None:
        return []
    return [Part("●", (confidence_colour(sure),)), Part(f" {percent(sure)}", faint)]


def _add_places(
    rows: Sequence[Row], found: Sequence[Checkpoint], places: Mapping[str, str]
) -> None:
    """Shown only where the position differs from the row above."""
    above = ""
    for one, row in zip(found, rows, strict=True) if places else ():
        place = places.get(one.id, "")
        text = shortened(visible(place), _LONGEST_MARK) if place != above else ""
        row["git"] = [Part(text, (DIM,))]
        above = place


def _changes(one: Checkpoint) -> list[Part]:
    changed = one.changed
    signs = (
        ("+", changed.added, GREEN),
        ("~", changed.modified, YELLOW),
        ("-", changed.removed, RED),
    )
    parts = [Part(f"{sign}{number:,}", (code,)) for sign, number, code in signs if number]
    return [spaced for part in parts for spaced in (Part(" "), part)][1:]


def _reason(terminal: Terminal, one: Checkpoint, width: int) -> list[str]:
    """The name and the first line of the reason, wrapped together and coloured separately."""
    name = f"{visible(one.name)}{_GAP}" if one.name else ""
    lines = wrapped(name + title(one), width)
    if name and cell_width(name) <= width:
        lines[0] = terminal.paint(name, BOLD) + lines[0].removeprefix(name)
    if one.partial:
        lines.append(terminal.paint("(partial)", YELLOW))
    return [terminal.paint(line, DIM) for line in lines] if one.kind.is_record else lines


def _cell(terminal: Terminal, parts: list[Part], width: int, *, right: bool = False) -> str:
    space = " " * (width - _width(parts))
    text = "".join(terminal.paint(part.text, *part.codes) for part in parts)
    return space + text if right else text + space


def _width(parts: list[Part]) -> int:
    return sum(cell_width(part.text) for part in parts)
