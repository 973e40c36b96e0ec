"""Standard input: a whole text, a typed line, a confirmation (RB-8), a passphrase."""

from __future__ import annotations

import io
import select
import sys
from typing import TYPE_CHECKING, TextIO

from holdfast.domain.errors import KeyNeeded, NeedsConfirmation, UsageError
from holdfast.interfaces.cli.failures import Declined
from holdfast.interfaces.signal_wakeup import drain, wakeup_handle

if TYPE_CHECKING:
    from holdfast.interfaces.cli.invocation import Invocation

READ_AT_MOST = 16_000_000
"""In characters. Input beyond the limit may never end, so it is not read."""


def text_on_standard_input(what: str) -> str:
    """Without the final line end. Bytes that are not UTF-8 are kept as escapes."""
    if sys.stdin is None:
        raise UsageError(f"no standard input to read the {what} from")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    text = sys.stdin.read(READ_AT_MOST + 1)
    if len(text) > READ_AT_MOST:
        raise UsageError(
            f"the {what} on standard input is longer than {READ_AT_MOST} characters",
            hint="shorten it, or put long text in a file of the workspace",
        )
    return text.removesuffix("\n")


def read_line() -> str:
    """A line that the user types, read so that Ctrl-C is never missed; empty at the end of the
    input."""
    with wakeup_handle() as wakeup:
        if wakeup is not None:
            typed = sys.stdin.fileno()
            while typed not in select.select([typed, wakeup], [], [])[0]:
                drain(wakeup)
    return sys.stdin.readline()


def require_confirmation(invocation: Invocation, what: str, question: str, *, hint: str) -> None:
    """Return if `--yes` was given or the user at the terminal agrees; raise otherwise."""
    if invocation.options.yes:
        return
    if not can_ask(invocation):
        raise NeedsConfirmation(what, hint=hint)
    if not agrees(invocation, question):
        raise Declined("Cancelled; nothing was changed.")


def agrees(
    invocation: Invocation, question: str, *, cancel_note: str = "nothing was changed"
) -> bool:
    """Whether the user at the terminal agrees; Ctrl-C reports `cancel_note`."""
    answer = ask_line(invocation, f"{question} [y/N] ", cancel_note)
    return answer.strip().lower() in ("y", "yes")


def ask_line(
    invocation: Invocation, question: str, cancel_note: str = "nothing was changed"
) -> str:
    """The line that the user types; empty at the end of the input."""
    invocation.terminal.flush()
    answer = ""
    try:
        with invocation.pause_clock(cancel_note):  # from here on the question is visible
            invocation.terminal.err.write(question)
            invocation.terminal.err.flush()
            answer = read_line()
    finally:
        if not answer.endswith("\n"):  # after Ctrl-C or Ctrl-D, start a new line
            invocation.terminal.err.write("\n")
    return answer


def can_ask(invocation: Invocation) -> bool:
    """Whether the user can see the question and answer it; never with --json."""
    return not invocation.json and _is_terminal(sys.stdin) and _is_terminal(invocation.terminal.err)


def has_keyboard(invocation: Invocation) -> bool:
    """Whether an interactive full screen is possible."""
    return invocation.terminal.out_is_live and not invocation.json and _is_terminal(sys.stdin)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def ask_passphrase(invocation: Invocation, question: str) -> str:
    """The passphrase that the user types, without echo."""
    from getpass import getpass

    invocation.terminal.flush()
    try:
        return getpass(question)
    except EOFError:
        raise KeyNeeded("no passphrase was given") from None
