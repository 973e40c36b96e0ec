"""Asking before something that one may not have meant (RB-8)."""

from __future__ import annotations

import sys

from holdfast.domain.errors import NeedsConfirmation, Refused
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import typed_line


def require_confirmation(invocation: Invocation, what: str, question: str, *, hint: str) -> None:
    """Return when `--yes` was given or somebody at a terminal agrees; raise otherwise."""
    if invocation.options.yes:
        return
    if invocation.json or not can_ask(invocation):
        raise NeedsConfirmation(what, hint=hint)
    if not agrees(invocation, question):
        raise Refused("not confirmed: nothing was changed")


def agrees(invocation: Invocation, question: str, *, so_far: str = "nothing was changed") -> bool:
    """What a person at the terminal says; `so_far` is what Ctrl-C reports."""
    invocation.terminal.flush()
    answer = ""
    try:
        with invocation.waiting(so_far):  # from when the question can be seen
            invocation.terminal.err.write(f"{question} [y/N] ")
            invocation.terminal.err.flush()
            answer = typed_line()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C or Ctrl-D: what follows begins on a line of its own
            invocation.terminal.err.write("\n")
    return answer.strip().lower() in ("y", "yes")


def can_ask(invocation: Invocation) -> bool:
    """Whether a person sees the question and can answer it."""
    try:
        return (
            sys.stdin is not None and sys.stdin.isatty() and bool(invocation.terminal.err.isatty())
        )
    except ValueError:  # closed
        return False


def has_keyboard(invocation: Invocation) -> bool:
    """Whether a whole screen can be shown to somebody who presses keys."""
    try:
        live = invocation.terminal.out_is_live and not invocation.json
        return live and sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        return False
