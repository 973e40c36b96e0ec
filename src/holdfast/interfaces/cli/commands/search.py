"""`holdfast search`: search reasons, messages and paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote

from holdfast.domain.ids import SessionId
from holdfast.domain.search.hits import Excerpt, Field, Hit, Match
from holdfast.domain.sessions import Session
from holdfast.interfaces.cli.arguments import Parser, limit_option
from holdfast.interfaces.cli.checkpoint_view import identifier, kind_colour, title
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.log_table import session_mark
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, YELLOW, Terminal, visible
from holdfast.interfaces.cli.wording import moment, when_words

ANSWERS = True
_DEFAULT_LIMIT = 20


def configure(parser: Parser) -> None:
    parser.usage = "holdfast search [QUERY] [-n N] [--session ID]"
    parser.description = """\
Search the names, reasons, tags, notes, ids, tool calls and changed paths of checkpoints, and the
messages around them. Best matches come first, each with the text that matched. All sessions are
searched unless you give --session.

All words must match, in any form: token finds tokens, refresh finds refreshing. "Quoted words"
match exactly, and tok* matches any word that starts with tok. Names in code match whole and by
their parts: user, getusername and get_user_name all find getUserName. If nothing is found, similar
words are suggested.

Filters: kind:risky, tag:x, name:before, path:src/auth, session:ID, after:2h, before:2026-11-15,
is:named (approved, annotated, partial, record, message). Unknown filters are searched as text.
Without words, the newest checkpoints come first."""
    parser.epilog = """\
examples:
  $ holdfast search login timeout
  $ holdfast search '"connection reset" kind:risky after:2h'
  $ holdfast search path:src/auth tag:nightly"""
    parser.add_argument("words", nargs="*", metavar="QUERY", help="what to search for")
    parser.add_argument(
        "-n", dest="limit", metavar="N", help=f"at most N (default {_DEFAULT_LIMIT})"
    )
    parser.add_argument(
        "--all-sessions", action="store_true", help="every session of the workspace (the default)"
    )


def run(invocation: Invocation) -> int:
    query = " ".join(invocation.all_words)
    most = limit_option(invocation.options.limit, _DEFAULT_LIMIT, least=1)
    with invocation.open() as opened:
        one = invocation.options.session is not None and not invocation.options.all_sessions
        wanted = invocation.session(opened) if one else None
        with invocation.busy("searching", opened):
            result = opened.history.search(query, session_id=wanted, limit=most, patience_s=None)
        listed = [] if one else opened.sessions.listed()
        sessions = {session.id: session for session in listed}
    if invocation.json:
        from holdfast.api.views.history import search_view

        invocation.emit(search_view(query, result, invocation.elapsed_ms))
        return 0
    if not result.hits:
        where = " in this session" if one else ""
        invocation.terminal.note(f"nothing found{where}")
        if not result.suggestions:
            invocation.terminal.note("  try fewer words, or browse: holdfast log --graph")
        for near in result.suggestions:
            invocation.terminal.note(f"  did you mean: holdfast search {quote(visible(near))}")
    _show_hits(invocation.terminal, result.hits, invocation.now, sessions=sessions)
    invocation.terminal.warn(*result.warnings)
    return 0


def _show_hits(
    terminal: Terminal,
    hits: Sequence[Hit],
    now: datetime,
    *,
    sessions: Mapping[SessionId, Session],
) -> None:
    """With several `sessions`, each hit names its session, by title for people."""
    for hit in hits:
        when = when_words(terminal, moment(hit.at_ns), now)
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
    """The reason for the heading, with highlights if it contains a whole match."""
    for match in matches:
        found = match.excerpt
        place = text.find(found.text)
        if match.field is Field.REASONING and place >= 0:
            spans = tuple((place + begin, place + end) for begin, end in found.spans)
            return _text(terminal, Excerpt(text, spans))
    return text


def _is_shown(match: Match, shown: Sequence[str]) -> bool:
    """Whether a line above already shows the match: a reason often contains the command and its
    path."""
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
    """Text with highlighted matches and without control characters."""
    parts, at = [], 0
    for begin, end in found.spans:
        parts.append(visible(found.text[at:begin]))
        parts.append(terminal.paint(visible(found.text[begin:end]), BOLD, YELLOW))
        at = end
    return "".join([*parts, visible(found.text[at:])])
