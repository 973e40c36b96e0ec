"""`holdfast search`: find a moment of the work by what was meant, said or touched."""

from __future__ import annotations

import sys

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

ANSWERS = True
_DEFAULT_LIMIT = 20


def configure(parser: Parser) -> None:
    parser.usage = "holdfast search [QUERY] [-n N] [--session ID]"
    parser.description = """\
Find checkpoints by their names, reasons, tags, annotations, ids, tool calls and changed paths, and
by the messages around them; best first, what matched below each. Every session of the workspace is
searched; --session limits it to one.

All words have to be there, in any form: token finds tokens, refresh finds refreshing. "Words in
quotes" follow each other exactly as written; a star behind a word finds what begins like that. If
nothing is found, near words that would find something are suggested.

Names in code are found whole and by their parts: getUserName by user, by
getusername and by get_user_name. Filters: kind:risky, tag:x, name:before, path:src/auth,
session:ID, after:2h, before:2026-11-15, is:named (approved, annotated, partial, record, message).
What is no filter is searched as text; no query is an error. Without one, or with filters alone, the
newest checkpoints come first."""
    parser.epilog = """\
examples:
  $ holdfast search login timeout
  $ holdfast search '"connection reset" kind:risky after:2h'
  $ holdfast search path:src/auth tag:nightly"""
    parser.add_argument("words", nargs="*", metavar="QUERY", help="what to look for")
    parser.add_argument(
        "-n", dest="limit", metavar="N", help=f"at most N (default {_DEFAULT_LIMIT})"
    )
    parser.add_argument(
        "--all-sessions", action="store_true", help="every session of the workspace (the default)"
    )


def run(invocation: Invocation) -> int:
    from shlex import quote

    from holdfast.interfaces.cli.search_view import show_hits
    from holdfast.interfaces.cli.terminal import visible

    query = " ".join(invocation.all_words)
    limit = _limit(invocation.options.limit)
    with invocation.open() as opened:
        one = invocation.options.session is not None and not invocation.options.all_sessions
        wanted = invocation.session(opened) if one else None
        with invocation.busy("searching", opened):
            result = opened.history.search(query, session_id=wanted, limit=limit, patience_s=None)
        listed = [] if one else opened.sessions.listed()
        sessions = {session.id: session for session in listed}
    if invocation.json:
        from holdfast.api.views.search import search_view

        invocation.emit(search_view(query, result, invocation.elapsed_ms))
        return 0
    if not result.hits:
        where = " in this session" if one else ""
        invocation.terminal.note(f"nothing was found{where}")
        if not result.suggestions:
            invocation.terminal.note("  try fewer words, or look through: holdfast log --graph")
        for near in result.suggestions:
            invocation.terminal.note(f"  did you mean: holdfast search {quote(visible(near))}")
    show_hits(invocation.terminal, result.hits, invocation.now, sessions=sessions)
    for warning in result.warnings:
        invocation.terminal.warn(warning)
    return 0


def _limit(text: str | None) -> int:
    if text is None:
        return _DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit()) or not int(text[:20]):
        raise UsageError(f"-n takes a number from 1 on, not {text!r}")
    return min(int(text[:20]), sys.maxsize)
