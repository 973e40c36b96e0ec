"""`holdfast why FILE[:LINE]`: show which step wrote each line, and why."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.domain.diff.line_origins import ExplainedLine, Explanation, LineOrigin, LineState
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import short
from holdfast.domain.tool_calls import call_words
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import identifier, shown_id
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import CYAN, DIM, YELLOW, Terminal, visible, visible_bytes
from holdfast.interfaces.cli.wording import first_line, headline, shortened, when_words

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace

ANSWERS = True
_LONGEST_NUMBER = 9
_REASON_WIDTH = 36
_LONGEST_MESSAGE = 300
_WITHOUT_CHECKPOINT = {
    LineState.UNSAVED: "not saved yet",
    LineState.ELSEWHERE: "saved by another session",
    LineState.OLDER: "older than the searched history",
}
_NO_AGENT = "a person or a program"


def configure(parser: Parser) -> None:
    parser.usage = "holdfast why FILE[:LINE] [--ref REF]"
    parser.description = """\
Show which checkpoint first contained each line of a file, and why it was written. For one LINE,
also show the tool call and the message behind it. The file is the one in the workspace, with
unsaved lines marked, or with --ref the one in that checkpoint.

Restored lines are credited to their original checkpoint, and renames are followed. Lines in the
first checkpoint are older than the history."""
    parser.epilog = """\
examples:
  $ holdfast why src/auth.py
  $ holdfast why src/auth.py:42
  $ holdfast why src/auth.py:42 --ref HEAD~3"""
    parser.add_argument(
        "words", nargs="*", metavar="FILE[:LINE]", help="the file, and optionally a line"
    )
    parser.add_argument("--ref", metavar="REF", help="use the file in this checkpoint")


def run(invocation: Invocation) -> int:
    words = invocation.at_most(1, "one file")
    if not words:
        raise UsageError("missing FILE", hint="usage: holdfast why src/app.py:12")
    with invocation.open() as opened:
        path, line = _place(invocation, opened, words[0])
        with invocation.busy("looking back", opened):
            found = opened.history.why(
                invocation.scope(opened), path, line=line, reference=invocation.options.ref
            )
    if invocation.json:
        from holdfast.api.views.history import explanation_view

        invocation.emit(explanation_view(found, invocation.elapsed_ms))
        return 0
    if line is None:
        _show_file(invocation.terminal, found)
    else:
        _show_line(invocation.terminal, found.lines[0], invocation.now)
    invocation.terminal.warn(*found.warnings)
    return 0


def _place(invocation: Invocation, opened: Workspace, word: str) -> tuple[bytes, int | None]:
    """The path and the line. A file whose name ends in a line number takes precedence."""
    name, colon, number = word.rpartition(":")
    is_number = number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
    line = None
    if colon and name and is_number and not _is_there(invocation, opened, word):
        word, line = name, int(number)
    paths = invocation.paths([word], opened.path)
    if not paths:
        raise UsageError(
            f"{word!r} is the whole workspace, not a file", hint="usage: holdfast why src/app.py:12"
        )
    return paths[0], line


def _is_there(invocation: Invocation, opened: Workspace, word: str) -> bool:
    paths = invocation.paths([word], opened.path)
    if not paths:
        return True
    if invocation.options.ref is None:
        return os.path.lexists(os.path.join(os.fsencode(opened.path), paths[0]))
    at = invocation.resolve(opened, invocation.options.ref)
    return opened.contents.entry(at, paths[0]) is not None


def _show_file(terminal: Terminal, found: Explanation) -> None:
    """One row per line: checkpoint, start of the reason, line number, text. Repeated values are
    blank."""
    width = len(str(found.total_lines))
    last: LineOrigin | None = None
    blank = len(short(found.of or "0" * 64)) + 2 + _REASON_WIDTH
    for line in found.lines:
        if line.origin is last and terminal.for_people:
            head = " " * blank
        else:
            head = _head(terminal, line.origin)
        last = line.origin
        number = terminal.paint(f"{line.number:>{width}}", DIM)
        terminal.line(f"{head}  {number}  {visible_bytes(line.text)}".rstrip())


def _head(terminal: Terminal, origin: LineOrigin) -> str:
    width = len(short("0" * 64))
    if origin.state is LineState.UNSAVED or origin.checkpoint is None:
        said = _WITHOUT_CHECKPOINT[origin.state]
        return terminal.paint(f"{said:<{width + 2 + _REASON_WIDTH}}", YELLOW)
    if origin.state is LineState.OLDER:
        said = shortened(_WITHOUT_CHECKPOINT[origin.state], _REASON_WIDTH)
    else:
        said = visible(shortened(_by(origin), _REASON_WIDTH))
    text = terminal.paint(shown_id(terminal, origin.checkpoint.id), CYAN)
    return f"{text}  {said:<{_REASON_WIDTH}}"


def _by(origin: LineOrigin) -> str:
    """The author in a few words; names an agent only if no other was working at the time."""
    if origin.by_hand:
        return f"an agent, {_NO_AGENT}" if origin.own or origin.others else _NO_AGENT
    if not origin.others:
        return _why(origin)
    if len(origin.others) == 1 and not origin.own:
        return origin.others[0].shown
    return "one of several agents at once"


def _why(origin: LineOrigin) -> str:
    """The reason of the step. `Before Write` names the checkpoint before the call, but the call
    wrote the line."""
    reason = first_line(origin.reasoning or "")
    return reason.removeprefix("Before ") if origin.tool_calls else reason


def _show_line(terminal: Terminal, line: ExplainedLine, now: datetime) -> None:
    """Everything about one line, one fact per row."""
    origin, found = line.origin, line.origin.checkpoint
    terminal.line(f"{terminal.paint(str(line.number), DIM)}  {visible_bytes(line.text)}".rstrip())
    terminal.line()
    if origin.state in _WITHOUT_CHECKPOINT:
        _fact(terminal, "written", terminal.paint(_WITHOUT_CHECKPOINT[origin.state], YELLOW))
    if found is None:
        return
    what = "already in" if origin.state is not LineState.WRITTEN else "first in"
    _fact(
        terminal,
        what,
        f"{identifier(terminal, found)}  {when_words(terminal, found.created_at, now)}",
    )
    if origin.state is LineState.INITIAL:
        _fact(terminal, "written", "older than the history")
    if origin.before is not None:
        _fact(
            terminal,
            "not yet in",
            terminal.paint(shown_id(terminal, origin.before), CYAN),
        )
    _fact(terminal, "file then", terminal.path(origin.path))
    if origin.session_id is not None:
        _fact(terminal, "session", visible(origin.session_id))
    if origin.reasoning is not None:
        _fact(terminal, "why", visible(shortened(_why(origin), _LONGEST_MESSAGE)))
    for number, other in enumerate(origin.others):
        is_first = number == 0 and not origin.own
        _fact(terminal, "written by" if is_first else "or by", visible(other.shown))
    if origin.by_hand:
        _fact(terminal, "or by" if origin.own or origin.others else "written by", _NO_AGENT)
    for call in origin.tool_calls:
        _fact(terminal, "tool call", visible(shortened(call_words(call), _LONGEST_MESSAGE)))
    for label, message in (("asked", origin.prompt), ("message", origin.message)):
        if message is not None and (label == "asked" or message is not origin.prompt):
            words = headline(message.content, _LONGEST_MESSAGE)
            _fact(terminal, label, f"{message.index + 1}, {message.role.value}: {words}")


def _fact(terminal: Terminal, label: str, value: str) -> None:
    terminal.sentence(f"{terminal.paint(f'{label:<10}', DIM)} {value}", hang=11)
