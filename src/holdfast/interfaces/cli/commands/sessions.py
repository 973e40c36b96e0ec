"""`holdfast sessions`: list the sessions of the workspace; rename, end, archive or delete one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import show_saved_first
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import require_confirmation
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, GREEN, Terminal, visible
from holdfast.interfaces.cli.text_layout import cell_width, padded
from holdfast.interfaces.cli.wording import ago, count, iso, moment, shortened, size

if TYPE_CHECKING:
    from holdfast.api.sessions import SessionSummary
    from holdfast.api.workspace import Workspace

ANSWERS = True
ACTIONS = {
    "rename": "give a session a title",
    "end": "mark a session as ended",
    "archive": "close a session for good",
    "delete": "delete a session with its checkpoints",
}
_DONE = {"rename": "Renamed", "end": "Ended", "archive": "Archived", "delete": "Deleted"}
_NAMES = (" ", "title", "agent", "status", "checkpoints", "unapproved", "last activity", "id")
_LONGEST_TITLE = 48
_GAP = "  "


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast sessions\n"
        "       holdfast sessions rename S TITLE\n"
        "       holdfast sessions end S\n"
        "       holdfast sessions archive S\n"
        "       holdfast sessions delete S [--yes]"
    )
    parser.description = """\
List sessions, most recently active first, with title, agent, status, checkpoints, unapproved
checkpoints and last activity. A session is one conversation with an agent. ▶ marks the current
session of the workspace. A session has ended when its agent is gone.

S is a session's id, its title, or the first characters of its id.
  rename    gives it a title
  end       marks it as ended; it can continue later
  archive   closes it for good; it can still be listed and restored
  delete    deletes it with all its checkpoints and messages, for good

delete asks first; use --yes in scripts. It never affects other sessions or your files."""
    parser.epilog = """\
examples:
  $ holdfast sessions
  $ holdfast sessions rename 3f2a "Fix the login"
  $ holdfast sessions delete "Fix the login" --yes"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="ACTION SESSION",
        help="rename, end, archive or delete, and a session",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="delete without asking")


def run(invocation: Invocation) -> int:
    words = invocation.all_words
    if words:
        _require_action(words)
    with invocation.open() as opened:
        if not words:
            return _list(invocation, opened)
        session = opened.sessions.find(words[1])
        if words[0] == "delete":
            return _delete(invocation, opened, session)
        return _change(invocation, opened, session, words)


def _require_action(words: list[str]) -> None:
    action, *given = words
    if action not in ACTIONS:
        raise UsageError(
            f"unknown action: sessions {action!r}", hint=f"actions are: {', '.join(ACTIONS)}"
        )
    needs, usage = (
        ("a session and a title", "S TITLE") if action == "rename" else ("a session", "S")
    )
    if len(given) != len(usage.split()):
        raise UsageError(
            f"{action} needs {needs}", hint=f"usage: holdfast sessions {action} {usage}"
        )


def _list(invocation: Invocation, opened: Workspace) -> int:
    found = opened.sessions.overview()
    if invocation.json:
        from holdfast.api.views.sessions import session_view

        invocation.emit([session_view(one) for one in found])
    elif not found:
        invocation.terminal.note('no sessions yet; to start one: holdfast checkpoint "why"')
    else:
        _show_sessions(invocation.terminal, found, invocation.now)
    return 0


def _change(invocation: Invocation, opened: Workspace, session: Session, words: list[str]) -> int:
    action, sessions = words[0], opened.sessions
    if action == "rename":
        sessions.rename(session.id, words[2])
    elif action == "end":
        sessions.end(session.id)
    else:
        sessions.archive(session.id)
    now = sessions.get(session.id) or session
    if invocation.json:
        from holdfast.api.views.sessions import changed_session_view

        invocation.emit(changed_session_view(now, sessions.status(now)))
        return 0
    terminal = invocation.terminal
    terminal.sentence(f"{terminal.tick} {_DONE[action]} {_name(now)}")
    return 0


def _delete(invocation: Invocation, opened: Workspace, session: Session) -> int:
    checkpoints = count(opened.sessions.checkpoint_count(session.id), "checkpoint")
    require_confirmation(
        invocation,
        f"deleting {_name(session)} with {checkpoints} cannot be undone and needs confirmation",
        f"Delete {_name(session)} with {checkpoints} for good?",
        hint="confirm it with --yes",
    )
    with invocation.busy("deleting", opened):
        outcome = opened.sessions.delete(session.id)
    if invocation.json:
        from holdfast.api.views.sessions import deleted_session_view

        invocation.emit(deleted_session_view(outcome))
        return 0
    terminal = invocation.terminal
    terminal.sentence(
        f"{terminal.tick} Deleted {_name(session)}: {checkpoints}, "
        f"{size(outcome.freed_bytes)} freed"
    )
    show_saved_first(terminal, outcome.saved_first)
    terminal.warn(*outcome.warnings)
    return 0


def _name(session: Session) -> str:
    title = f' "{visible(session.title)}"' if session.title else ""
    return f"session {visible(session.id)}{title}"


def _show_sessions(terminal: Terminal, found: Sequence[SessionSummary], now: datetime) -> None:
    if terminal.for_people:
        _show_table(terminal, found, now)
        return
    for one in found:
        head = "(HEAD) " if one.has_head else ""
        at = iso(moment(one.last_activity_ns))
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
    terminal.line(heading.rstrip(), DIM)
    for one, row in zip(found, rows, strict=True):
        cells = [padded(text, width) for text, width in zip(row, widths, strict=True)]
        cells[0] = terminal.paint(cells[0], BOLD, CYAN)
        if one.status is SessionStatus.ACTIVE:
            cells[3] = terminal.paint(cells[3], GREEN)
        cells[-1] = terminal.paint(cells[-1].rstrip(), DIM)
        terminal.line(_GAP.join(cells))


def _show_list(terminal: Terminal, found: Sequence[SessionSummary], now: datetime) -> None:
    """A list with the details below each title, for terminals too narrow for columns."""
    for one in found:
        mark = "▶ " if one.has_head else "  "
        title = shortened(visible(one.session.title or one.session.id), terminal.width - 2)
        terminal.line(terminal.paint(mark, BOLD, CYAN) + terminal.paint(title, BOLD))
        agent = f"{visible(one.session.agent)}, " if one.session.agent else ""
        state = f"{agent}{one.status.value}, {ago(moment(one.last_activity_ns), now)}"
        held = f"{count(one.checkpoints, 'checkpoint')}, {one.unapproved} not approved"
        for line in (state, held, visible(one.session.id)):
            terminal.line(f"    {shortened(line, terminal.width - 4)}", DIM)


def _row(one: SessionSummary, now: datetime) -> tuple[str, ...]:
    return (
        "▶" if one.has_head else "",
        shortened(visible(one.session.title or ""), _LONGEST_TITLE),
        visible(one.session.agent or ""),
        one.status.value,
        f"{one.checkpoints:,}",
        f"{one.unapproved:,}",
        ago(moment(one.last_activity_ns), now),
        visible(one.session.id),
    )
