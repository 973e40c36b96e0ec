"""`holdfast replay`: walk through a session step by step, without touching the workspace."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.api.diffs import Diffs
    from holdfast.api.history import Replay
    from holdfast.api.workspace import Workspace

ANSWERS = True
_PARTIAL = 3


def configure(parser: Parser) -> None:
    parser.usage = "holdfast replay [REF] [--patch]"
    parser.description = """\
Walk through what was done in the session: each checkpoint and each restore is a step, with why it
was made, what it changed, every file as it was then, and what had been said. It begins at REF, an
id, a name, HEAD~n and so on, as for restore; without it, at the last step. The workspace is
never touched.

At a terminal it is a view that keys move: n and p, or the arrows, step forward and back, g and G go
to the first and the last step, d shows the changed lines, f the files, m the messages, ? all keys
and q quits. In a pipe the steps are listed, oldest first. A step whose content is damaged says so,
and the others are shown all the same; the exit status of a list is then 3."""
    parser.epilog = """\
examples:
  $ holdfast replay
  $ holdfast replay before-refactor
  $ holdfast replay --json | jq '.steps[].reasoning'"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="REF",
        help="the checkpoint to begin at (default: the last step)",
    )
    parser.add_argument(
        "-p", "--patch", action="store_true", help="the changed lines of each step, not only paths"
    )


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.standard_input import has_keyboard

    words = invocation.at_most(1, "one checkpoint")
    # Not even an interrupted restore is put right by looking at what was.
    with invocation.open(recover=False) as opened:
        start = invocation.resolve(opened, words[0] if words else "HEAD")
        history = opened.history
        with history.replay(start.session_id, start, from_last_step=not words) as replay:
            if has_keyboard(invocation):
                _browse(invocation, opened.diffs, replay)
                return 0
            return 0 if _list(invocation, opened, replay) else _PARTIAL


def _browse(invocation: Invocation, diffs: Diffs, replay: Replay) -> None:
    from holdfast.interfaces.cli.replay_view.browser import Browser
    from holdfast.interfaces.cli.replay_view.pages import Pages
    from holdfast.interfaces.cli.replay_view.screen import Screen

    terminal = invocation.terminal
    terminal.flush()
    screen = Screen(sys.stdin.fileno(), terminal.out.fileno(), colour=terminal.out_colour)
    pages = Pages(diffs, replay, terminal, invocation.now)
    Browser(replay, pages, screen, page="diff" if invocation.options.patch else "step").run()


def _list(invocation: Invocation, opened: Workspace, replay: Replay) -> bool:
    from holdfast.interfaces.cli.replay_view.listing import show_steps, write_json

    terminal, patch = invocation.terminal, invocation.options.patch
    if not invocation.json:
        return show_steps(terminal, opened.diffs, replay, patch=patch, now=invocation.now)
    session = opened.sessions.get(replay.step.checkpoint.session_id)
    head = session.head if session is not None else None
    return write_json(terminal, opened.diffs, replay, patch=patch, head=head)
