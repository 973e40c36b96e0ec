"""Search results as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from holdfast.domain.ids import SessionId
from holdfast.domain.search.highlights import Excerpt
from holdfast.domain.search.hits import Field, Hit, Match
from holdfast.domain.sessions import Session
from holdfast.interfaces.cli.checkpoint_view import identifier, kind_colour, title
from holdfast.interfaces.cli.log_table import session_mark
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, YELLOW, Terminal, visible
from holdfast.interfaces.cli.wording import ago, iso


def show_hits(
    terminal: Terminal,
    hits: Sequence[Hit],
    now: datetime,
    *,
    sessions: Mapping[SessionId, Session],
) -> None:
    """Where there are several `sessions`, each hit names its own: by the title for people."""
    for hit in hits:
        at = _moment(hit)
        when = ago(at, now) if terminal.for_people else iso(at)
        where = ""
        if len(sessions) > 1:
            known = sessions.get(hit.session_id) if terminal.for_people else None
            mark = visible(hit.session_id) if known is None else session_mark(known)
            where = f"  {terminal.paint(mark, CYAN)}"
        found = hit.checkpoint
        shown: list[str] = []
        if found is None:
            head = f"{terminal.paint('message', DIM)}  {when}{where}"
        else:
            kind = terminal.paint(found.kind.value, kind_colour(found.kind))
            name = identifier(terminal, found)
            head = f"{name}  {when}  {kind}{where}  {_title(terminal, title(found), hit.matches)}"
            shown += [found.name or "", title(found)]
        terminal.sentence(head)
        for match in hit.matches:
            if match.message_index is None and _is_shown(match, shown):
                continue
            shown.append(match.excerpt.text)
            terminal.sentence(
                f"    {terminal.paint(_label(match), DIM)} {_text(terminal, match.excerpt)}"
            )


def _title(terminal: Terminal, text: str, matches: Sequence[Match]) -> str:
    """The reason in the heading, where it has all of a match with what matched in it."""
    for match in matches:
        found = match.excerpt
        place = text.find(found.text)
        if match.field is Field.REASONING and place >= 0:
            spans = tuple((place + begin, place + end) for begin, end in found.spans)
            return _text(terminal, Excerpt(text, spans))
    return text


def _is_shown(match: Match, shown: Sequence[str]) -> bool:
    """Whether a line above has the same: a command is in the reason, and its path in both."""
    text = match.excerpt.text.strip("… ")
    return any(text in line for line in shown)


def _label(match: Match) -> str:
    if match.field is Field.REASONING:
        return "reason:"
    if match.message_index is None:
        return f"{match.field.value}:"
    gone = ", rolled back" if match.rolled_back else ""
    return f"{match.field.value} {match.message_index + 1} ({match.role}{gone}):"


def _text(terminal: Terminal, found: Excerpt) -> str:
    """What matched stands out; nothing in the text can do more than be read."""
    parts, at = [], 0
    for begin, end in found.spans:
        parts.append(visible(found.text[at:begin]))
        parts.append(terminal.paint(visible(found.text[begin:end]), BOLD, YELLOW))
        at = end
    return "".join([*parts, visible(found.text[at:])])


def _moment(hit: Hit) -> datetime:
    return datetime.fromtimestamp(hit.at_ns / 1e9, tz=UTC)
