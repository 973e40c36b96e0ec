"""`holdfast replay`: step through a session, without touching the workspace."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.api.views.changes import ChangeView, change_view
from holdfast.api.views.history import (
    DamagedStepView,
    ReplayStepView,
    agents_at_view,
    component_lines_view,
    damaged_step_view,
    memory_at_view,
    replay_message_view,
    replay_step_view,
)
from holdfast.domain.errors import HoldfastError, UsageError
from holdfast.domain.paths import to_text
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import confidence_word, identifier, title
from holdfast.interfaces.cli.diff_output import change_as_json
from holdfast.interfaces.cli.diff_view import changed_path, notes, show_difference
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.long_output import whole_output
from holdfast.interfaces.cli.standard_input import has_keyboard
from holdfast.interfaces.cli.terminal import BOLD, DIM, RED, Terminal, visible
from holdfast.interfaces.cli.wording import when_words

if TYPE_CHECKING:
    from holdfast.api.diffs import Diffs
    from holdfast.api.history import Replay
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint

ANSWERS = True


def configure(parser: Parser) -> None:
    parser.usage = "holdfast replay [REF] [--patch | --agents | --memory]"
    parser.description = """\
Step through a session. Each checkpoint and restore is a step, with its reason, its changes, all
files at that time and the conversation so far. REF is the step to start at (default: the last one).
The workspace is never changed.

On a terminal, n and p or the arrow keys move between steps, g and G go to the first and last step,
d shows changed lines, f files, m messages, ? all keys, and q quits. In a pipe, steps are listed
oldest first. A damaged step is marked and the others are still shown; the exit status is then 3."""
    parser.epilog = """\
examples:
  $ holdfast replay
  $ holdfast replay before-refactor
  $ holdfast replay before-refactor --memory
  $ holdfast replay --json | jq '.steps[].reasoning'"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="REF",
        help="the checkpoint to start at (default: the last step)",
    )
    parser.add_argument(
        "-p", "--patch", action="store_true", help="the changed lines of each step, not only paths"
    )
    parser.add_argument("--agents", action="store_true", help="only the agent states at that time")
    parser.add_argument(
        "--memory", action="store_true", help="only the agents' memory files at that time"
    )


def run(invocation: Invocation) -> int:
    words = invocation.at_most(1, "one checkpoint")
    options = invocation.options
    if options.patch + options.agents + options.memory > 1:
        raise UsageError(
            "only one of --patch, --agents and --memory can be used", hint="choose one"
        )
    # A replay does not even repair an interrupted restore.
    with invocation.open(recover=False) as opened:
        start = invocation.resolve(opened, words[0] if words else "HEAD")
        if options.agents:
            _show_agents(invocation, opened, start)
            return 0
        if options.memory:
            _show_memory(invocation, opened, start)
            return 0
        history = opened.history
        with history.replay(start.session_id, start, from_last_step=not words) as replay:
            if has_keyboard(invocation):
                _browse(invocation, opened.diffs, replay)
                return 0
            return 0 if _list(invocation, opened, replay) else PARTIAL


def _show_agents(invocation: Invocation, opened: Workspace, start: Checkpoint) -> None:
    found = opened.contents.agent_states(start)
    if invocation.json:
        invocation.emit(agents_at_view(start, found))
        return
    if not found:
        invocation.terminal.note("no agent had set a state at that time")
    for one in found:
        state = json.dumps(one.state, ensure_ascii=False)
        invocation.terminal.line(visible(f"{one.agent} ({one.session_id}): {state}"))


def _show_memory(invocation: Invocation, opened: Workspace, start: Checkpoint) -> None:
    files = opened.contents.memory_files(start)
    if invocation.json:
        invocation.emit(memory_at_view(start, files))
        return
    terminal, any_file = invocation.terminal, False
    for path, content in files:
        any_file = True
        terminal.line(visible(to_text(path)), BOLD)
        for line in content.decode("utf-8", "replace").splitlines():
            terminal.line(f"    {visible(line)}")
    if not any_file:
        terminal.note("the checkpoint has no agent memory files (setting agent_state)")


def _browse(invocation: Invocation, diffs: Diffs, replay: Replay) -> None:
    from holdfast.interfaces.cli.replay_browser import Browser, Pages
    from holdfast.interfaces.cli.screen import Screen

    terminal = invocation.terminal
    terminal.flush()
    screen = Screen(sys.stdin.fileno(), terminal.out.fileno(), colour=terminal.out_colour)
    pages = Pages(diffs, replay, terminal, invocation.now)
    Browser(replay, pages, screen, page="diff" if invocation.options.patch else "step").run()


def _list(invocation: Invocation, opened: Workspace, replay: Replay) -> bool:
    terminal, patch = invocation.terminal, invocation.options.patch
    if not invocation.json:
        return _show_steps(terminal, opened.diffs, replay, patch=patch, now=invocation.now)
    session = opened.sessions.get(replay.step.checkpoint.session_id)
    head = session.head if session is not None else None
    return _write_json(terminal, opened.diffs, replay, patch=patch, head=head)


def _show_steps(
    terminal: Terminal, diffs: Diffs, replay: Replay, *, patch: bool, now: datetime
) -> bool:
    """Print each step with its changes. Returns whether all steps are readable."""
    start, whole = replay.position, True
    for index in range(len(replay.steps)):
        try:
            step = replay.go_to(index)
        except HoldfastError as error:
            whole = False
            terminal.line(f"  {index + 1} damaged: {visible(error.message)}", RED)
            continue
        found = step.checkpoint
        mark = ">" if step.index == start else " "
        terminal.line(
            f"{mark} {step.index + 1} {terminal.paint(step.action.value, BOLD)} "
            f"{identifier(terminal, found)} {when_words(terminal, found.created_at, now)} "
            f"{found.kind.value} {confidence_word(found)} {title(found)}"
        )
        try:
            _show_changes(terminal, diffs, replay, patch=patch)
        except HoldfastError as error:
            whole = False
            terminal.line(f"    damaged: {visible(error.message)}", RED)
    return whole


def _show_changes(terminal: Terminal, diffs: Diffs, replay: Replay, *, patch: bool) -> None:
    changes = replay.changes()
    if patch:
        step = replay.step
        difference = diffs.of(step.before, step.checkpoint, changes)
        show_difference(terminal, difference)
        return
    for change in changes:
        said = terminal.paint(f" ({', '.join(notes(change))})", DIM) if notes(change) else ""
        terminal.line(f"    {change.type.value} {changed_path(terminal, change)}{said}")


def _write_json(
    terminal: Terminal, diffs: Diffs, replay: Replay, *, patch: bool, head: str | None
) -> bool:
    """Like `_show_steps`, as one JSON value."""
    start, whole = replay.position, True
    begin = {"session_id": replay.session_id, "position": start}
    with whole_output(terminal) as write:
        write(json.dumps(begin)[:-1].encode() + b', "steps": [')
        for index in range(len(replay.steps)):
            view: ReplayStepView | DamagedStepView
            try:
                replay.go_to(index)
                view = _step(diffs, replay, patch=patch, head=head)
            except HoldfastError as error:
                view = damaged_step_view(index, error)
            whole = whole and view["damage"] is None
            write(((", " if index else "") + json.dumps(view)).encode())
        write(b"]}\n")
    return whole


def _step(diffs: Diffs, replay: Replay, *, patch: bool, head: str | None) -> ReplayStepView:
    view = replay_step_view(replay, head=head)
    try:
        view["changes"] = list(_changes(diffs, replay, patch=patch))
        view["components"] = component_lines_view(replay.components())
        view["messages"] = [replay_message_view(message) for message in replay.new_messages()]
    except HoldfastError as error:
        view["damage"] = error.to_dict()
    return view


def _changes(diffs: Diffs, replay: Replay, *, patch: bool) -> Iterator[ChangeView]:
    changes = replay.changes()
    difference = diffs.of(replay.step.before, replay.step.checkpoint, changes)
    for change in changes:
        yield change_as_json(difference, change) if patch else change_view(change)
