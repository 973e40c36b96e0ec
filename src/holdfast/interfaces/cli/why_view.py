"""The origins of lines as people read them."""

from __future__ import annotations

from datetime import datetime

from holdfast.domain.diff.line_origins import ExplainedLine, Explanation, LineOrigin, LineState
from holdfast.domain.ids import short
from holdfast.domain.tool_calls import call_words
from holdfast.interfaces.cli.checkpoint_view import identifier, moment
from holdfast.interfaces.cli.terminal import CYAN, DIM, YELLOW, Terminal, visible, visible_bytes
from holdfast.interfaces.cli.wording import first_line, shortened

_REASON_WIDTH = 36
_LONGEST_MESSAGE = 300
_WITHOUT_CHECKPOINT = {
    LineState.UNSAVED: "not saved yet",
    LineState.ELSEWHERE: "saved by another session",
    LineState.OLDER: "older than what was looked at",
}


_NO_AGENT = "by hand or by a program"


def show_file(terminal: Terminal, found: Explanation, now: datetime) -> None:
    """A line each: the checkpoint, the beginning of the reason, the number, the text. What is the
    same as above is not said again."""
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
    text = short(origin.checkpoint.id) if terminal.for_people else origin.checkpoint.id
    return f"{terminal.paint(text, CYAN)}  {said:<{_REASON_WIDTH}}"


def _by(origin: LineOrigin) -> str:
    """Who or what wrote it, in a few words; never one agent where it may have been another."""
    if origin.by_hand:
        return _NO_AGENT if not (origin.own or origin.others) else f"an agent, or {_NO_AGENT}"
    if not origin.others:
        return first_line(origin.reasoning or "")
    if len(origin.others) == 1 and not origin.own:
        return origin.others[0].shown
    return "one of several agents at once"


def show_line(terminal: Terminal, line: ExplainedLine, now: datetime) -> None:
    """Everything about one line, one fact below the other."""
    origin, found = line.origin, line.origin.checkpoint
    terminal.line(f"{terminal.paint(str(line.number), DIM)}  {visible_bytes(line.text)}".rstrip())
    terminal.line()
    if origin.state in _WITHOUT_CHECKPOINT:
        _fact(terminal, "written", terminal.paint(_WITHOUT_CHECKPOINT[origin.state], YELLOW))
    if found is None:
        return
    what = "there in" if origin.state is not LineState.WRITTEN else "first in"
    _fact(terminal, what, f"{identifier(terminal, found)}  {moment(terminal, found, now)}")
    if origin.state is LineState.INITIAL:
        _fact(terminal, "written", "before the history begins")
    if origin.before is not None:
        before = short(origin.before) if terminal.for_people else origin.before
        _fact(terminal, "not yet in", terminal.paint(before, CYAN))
    _fact(terminal, "file then", terminal.path(origin.path))
    if origin.session_id is not None:
        _fact(terminal, "session", visible(origin.session_id))
    if origin.reasoning is not None:
        _fact(terminal, "why", visible(shortened(first_line(origin.reasoning), _LONGEST_MESSAGE)))
    for number, other in enumerate(origin.others):
        is_first = number == 0 and not origin.own
        _fact(terminal, "written by" if is_first else "or by", visible(other.shown))
    if origin.by_hand:
        _fact(terminal, "or" if origin.own or origin.others else "written", _NO_AGENT)
    for call in origin.tool_calls:
        _fact(terminal, "tool call", visible(shortened(call_words(call), _LONGEST_MESSAGE)))
    for label, message in (("asked", origin.prompt), ("message", origin.message)):
        if message is not None and (label == "asked" or message is not origin.prompt):
            words = visible(shortened(first_line(message.content), _LONGEST_MESSAGE))
            _fact(terminal, label, f"{message.index + 1}, {message.role.value}: {words}")


def _fact(terminal: Terminal, label: str, value: str) -> None:
    terminal.sentence(f"{terminal.paint(f'{label:<10}', DIM)} {value}", hang=11)
