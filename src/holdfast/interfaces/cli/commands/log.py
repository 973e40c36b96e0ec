"""`holdfast log`: the checkpoints of every session, newest first."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser, limit_option
from holdfast.interfaces.cli.checkpoint_view import change_marks, confidence_word, title
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import BOLD, DIM, visible
from holdfast.interfaces.cli.wording import iso

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.api.history import HistoryFilter
    from holdfast.api.views.sessions import RoundView
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.ids import SessionId
    from holdfast.domain.sessions import Session

ANSWERS = True
_DEFAULT_LIMIT = 20


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast log [PATH ...] [-n N] [--since TIME | --days N] [--until TIME] [--kind KIND]\n"
        "                    [--records | --graph | --messages | --rounds] [--before PLACE]"
    )
    parser.description = """\
List the checkpoints of the workspace, newest first. If there are several sessions, each checkpoint
shows its own; --session S lists one session. With PATHs, list only checkpoints that changed one of
them. --since and --until take an age (2h, 3d), a date or a time (today, 09:30, "2026-11-15 09:30").

Each restore adds two records: the state before it (safety) and after it (restore). --records lists
them too, and they can be restored like any checkpoint.

On a terminal, this is a table with relative times and a mark for the confidence: green from 90%,
yellow from 70%, else orange. In a pipe, each checkpoint is one line, with full ids and times in
UTC. ▶ and (HEAD) mark the checkpoint that the workspace is at.

With --graph, draw everything that happened in the workspace, or with --session S in one session,
like a commit graph. Each line of work has a lane. A new lane begins where work continued from an
older checkpoint. --messages adds the conversation. With --since or --days N, all newer events are
shown. With --json, both options print the timeline as data, including messages. --rounds lists the
rounds of every session, or of one."""
    parser.epilog = """\
examples:
  $ holdfast log -n 5
  $ holdfast log src/app.py --since 2d
  $ holdfast log --kind manual,risky
  $ holdfast log --graph --messages
  $ holdfast log --json | jq -r '.[].id'"""
    parser.add_argument(
        "words", nargs="*", metavar="PATH", help="only checkpoints that changed one of these"
    )
    parser.add_argument("--since", metavar="TIME", help="only checkpoints made since then")
    parser.add_argument("--days", metavar="N", help="only the last N days")
    parser.add_argument("--until", metavar="TIME", help="only checkpoints made until then")
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="only this kind, or several with commas: manual, auto (all automatic ones), "
        f"{', '.join(kind.value for kind in Kind if kind is not Kind.MANUAL)}",
    )
    parser.add_argument(
        "-n", dest="limit", metavar="N", help=f"at most N (default {_DEFAULT_LIMIT}; 0: all)"
    )
    parser.add_argument(
        "--records", action="store_true", help="also the states before and after restores"
    )
    parser.add_argument(
        "--graph", action="store_true", help="draw the timeline: lines of work, restores, rounds"
    )
    parser.add_argument(
        "--messages", action="store_true", help="show the timeline with the conversation"
    )
    parser.add_argument(
        "--before",
        metavar="PLACE",
        help="with --graph or --messages: continue at the `next` of a timeline",
    )
    parser.add_argument(
        "--rounds", action="store_true", help="list the rounds: active, approved and abandoned"
    )


def run(invocation: Invocation) -> int:
    _require_one_view(invocation)
    if invocation.options.rounds:
        return _rounds(invocation)
    if invocation.options.graph or invocation.options.messages:
        return _timeline(invocation)
    most = _limit(invocation)
    with invocation.open(mention_former_store=True) as opened:
        scope = invocation.scope(opened)
        wanted = _wanted(invocation, opened.path, scope)
        found, more = opened.history.filtered(wanted, most)
        head = opened.head(scope)
        sessions = {one.id: one for one in opened.sessions.all()}
        states = opened.contents.git_states(found)
    total = len(found) + more
    if not wanted.is_narrow:
        _include_head(found, head, most)
    here = None if head is None else head.id
    marks = {} if scope is not None or len(sessions) == 1 else sessions
    if invocation.json:
        _as_json(invocation, found, here, sessions, states)
    elif not found:
        invocation.terminal.note(_nothing(invocation, scope, wanted))
    else:
        places = _places(found, states)
        with invocation.paged():
            if invocation.terminal.for_people:
                from holdfast.interfaces.cli.log_table import show_table

                show_table(invocation.terminal, found, here, invocation.now, marks, places, total)
            else:
                _plain(invocation, found, here, marks, places)
            _show_how_many_more(invocation, total, more, whole=not wanted.is_narrow)
    return 0


def _wanted(invocation: Invocation, workspace: Path, scope: SessionId | None) -> HistoryFilter:
    from holdfast.api.history import HistoryFilter

    options = invocation.options
    return HistoryFilter(
        scope,
        options.records,
        invocation.paths(invocation.all_words, workspace),
        _since_ns(invocation),
        _moment(invocation, "--until", options.until),
        _kinds(options.kind),
    )


def _kinds(text: str | None) -> tuple[Kind, ...]:
    if text is None:
        return ()
    from holdfast.api.arguments import kinds

    return kinds("--kind", text)


def _since_ns(invocation: Invocation) -> int | None:
    """The time that `--since` or `--days` gives."""
    options = invocation.options
    if options.days is None:
        return _moment(invocation, "--since", options.since)
    if options.since is not None:
        raise UsageError("--days cannot be used with --since", hint="choose one")
    if not (options.days.isascii() and options.days.isdigit() and len(options.days) < 6):
        raise UsageError(f"--days takes a number of days, not {options.days!r}")
    return int(invocation.now.timestamp() * 1e9) - int(options.days) * 86_400 * 1_000_000_000


def _moment(invocation: Invocation, option: str, text: str | None) -> int | None:
    if text is None:
        return None
    from holdfast.domain.search.query import moment_ns

    found = moment_ns(text, int(invocation.now.timestamp() * 1e9))
    if found is None:
        raise UsageError(
            f"invalid time for {option}: {text!r}",
            hint=f"write an age or a date: {option} 2h, {option} yesterday, {option} 2026-11-15",
        )
    return found


def _places(found: Sequence[Checkpoint], states: Mapping[str, ComponentState]) -> dict[str, str]:
    """Branch, commit and number of dirty files, by checkpoint."""
    from holdfast.domain.git.drift import git_place

    places = {one.id: git_place(states.get(one.id), one) for one in found}
    return {identifier: place for identifier, place in places.items() if place is not None}


def _nothing(invocation: Invocation, scope: SessionId | None, wanted: HistoryFilter) -> str:
    words = invocation.all_words
    nothing = f"no checkpoint matches the path {', '.join(map(repr, words))}"
    if len(words) == 1 and (number := words[0].lstrip("-")).isdigit():
        return f"{nothing}; for the last {number}: holdfast log -n {number}"
    if words:
        return f"{nothing}; everything: holdfast log; by words: holdfast search"
    if wanted.is_narrow:
        return "no checkpoint matches; without a filter: holdfast log"
    where = "the workspace" if scope is None else f"the session {scope}"
    return f'{where} has no checkpoint yet; to create one: holdfast checkpoint "why"'


def _show_how_many_more(invocation: Invocation, total: int, more: int, *, whole: bool) -> None:
    """In a pipe, write it to standard error, because every output line is a checkpoint. `whole` is
    False if a filter was given."""
    if not more:
        return
    how = "holdfast log -n 0" if whole else "the same with -n 0"
    words = f"… {more:,} more of {total:,}: {how}"
    terminal = invocation.terminal
    if terminal.for_people:
        terminal.line(words, DIM)
    else:
        terminal.note(words)


def _include_head(found: list[Checkpoint], head: Checkpoint | None, limit: int | None) -> None:
    """HEAD is always shown, even if only a restore record has that state."""
    if head is None or not head.kind.is_record or any(one.id == head.id for one in found):
        return
    after = [place for place, one in enumerate(found) if one.sequence < head.sequence]
    if after or limit is None or len(found) < limit:
        found.insert(after[0] if after else len(found), head)
        del found[limit:]


def _as_json(
    invocation: Invocation,
    found: Sequence[Checkpoint],
    here: str | None,
    sessions: Mapping[SessionId, Session],
    states: Mapping[str, ComponentState],
) -> None:
    from holdfast.api.views.checkpoints import logged_checkpoint_view

    invocation.emit(
        [
            logged_checkpoint_view(
                one, sessions[one.session_id], states.get(one.id), is_head=one.id == here
            )
            for one in found
        ]
    )


def _require_one_view(invocation: Invocation) -> None:
    """Refuse combinations in which an option would be ignored."""
    options = invocation.options
    timeline = options.graph or options.messages
    views = [
        name
        for name, chosen in (
            ("--records", options.records),
            ("--graph" if options.graph else "--messages", timeline),
            ("--rounds", options.rounds),
        )
        if chosen
    ]
    if len(views) > 1:
        raise UsageError(
            f"{views[0]} cannot be used with {views[1]}",
            hint="choose one; see: holdfast log --help",
        )
    narrow = bool(
        invocation.all_words
        or options.until
        or options.kind
        or ((options.since or options.days) and options.rounds)
    )
    if narrow and (timeline or options.rounds):
        since = ", no --since" if options.rounds else ""
        raise UsageError(
            f"{views[0]} takes no paths, no --until{since} and no --kind",
            hint="list the checkpoints with them: holdfast log PATH --since 2h",
        )
    if options.before is not None and not timeline:
        raise UsageError(
            "--before requires --graph or --messages",
            hint="add one of them; to list what is older: holdfast log --until TIME",
        )


def _timeline(invocation: Invocation) -> int:
    from holdfast.api.views.timeline import timeline_view
    from holdfast.interfaces.cli.timeline_view import show_timeline

    options = invocation.options
    since_ns = _since_ns(invocation)
    whole = since_ns is not None and options.limit is None
    most = (None if whole else _limit(invocation)) or sys.maxsize >> 2
    messages = options.messages or invocation.json
    with invocation.open(mention_former_store=True) as opened:
        wanted = _one_session(invocation, opened)
        listed = opened.sessions.listed() if wanted is None else []
        sessions = {one.id: one for one in listed}
        page = opened.history.timeline(
            wanted, limit=most, before=options.before, messages=messages, since_ns=since_ns
        )
        rounds = _all_rounds(opened, wanted) if invocation.json else []
    if invocation.json:
        invocation.emit(timeline_view(page, rounds))
        return 0
    with invocation.paged():
        show_timeline(
            invocation.terminal, page, invocation.now, graph=options.graph, sessions=sessions
        )
    invocation.terminal.warn(*page.warnings)
    return 0


def _one_session(invocation: Invocation, opened: Workspace) -> SessionId | None:
    """The requested session, or the only one; None for the whole workspace."""
    scope = invocation.scope(opened)
    listed = opened.sessions.listed()
    if scope is not None or len(listed) > 1:
        return scope
    return listed[0].id if listed else invocation.session(opened)


def _all_rounds(opened: Workspace, wanted: SessionId | None) -> list[RoundView]:
    """Oldest first; for the whole workspace, each with its session."""
    from holdfast.api.views.sessions import round_view

    if wanted is not None:
        return [round_view(one) for one in opened.rounds.all(wanted)]
    sessions = opened.sessions.listed()
    found = [(one, session.id) for session in sessions for one in opened.rounds.all(session.id)]
    found.sort(key=lambda pair: pair[0].started_at_ns)
    return [round_view(one, session) for one, session in found]


def _rounds(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.log_table import session_mark
    from holdfast.interfaces.cli.timeline_view import show_rounds

    most = _limit(invocation)
    with invocation.open(mention_former_store=True) as opened:
        wanted = _one_session(invocation, opened)
        views = _all_rounds(opened, wanted) if invocation.json else []
        sessions = [one for one in opened.sessions.listed() if wanted in (None, one.id)]
        found = {one.id: opened.rounds.all(one.id) for one in sessions}
    if invocation.json:
        invocation.emit(list(reversed(views if most is None else views[-most:])))
        return 0
    terminal = invocation.terminal
    for session in reversed(sessions):
        if wanted is None:
            known = session_mark(session) if terminal.for_people else session.id
            terminal.line(visible(known), BOLD)
        rounds = found[session.id] if most is None else found[session.id][-most:]
        show_rounds(terminal, rounds, invocation.now, invocation.chosen_session)
    return 0


def _limit(invocation: Invocation) -> int | None:
    return limit_option(invocation.options.limit, _DEFAULT_LIMIT, least=0) or None


def _plain(
    invocation: Invocation,
    found: Sequence[Checkpoint],
    here: str | None,
    marks: Mapping[SessionId, Session],
    places: Mapping[str, str],
) -> None:
    for one in found:
        name = f"[{visible(one.name)}] " if one.name else ""
        head = "(HEAD) " if one.id == here else ""
        place = f"({visible(places[one.id])}) " if one.id in places else ""
        session = f"{{{visible(one.session_id)}}} " if marks else ""
        invocation.terminal.line(
            f"{one.id} {iso(one.created_at)} {one.kind.value} {confidence_word(one)} "
            f"{one.files} {change_marks(one.changed)} {head}{place}{session}{name}{title(one)}"
        )
