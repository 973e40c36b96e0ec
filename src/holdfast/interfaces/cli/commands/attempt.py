"""`holdfast attempt REASON -- COMMAND`: run a command, and roll everything back if it fails."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from holdfast.domain.errors import CommandNotFound, CommandNotRunnable, UsageError
from holdfast.domain.ids import short
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import YELLOW, visible

if TYPE_CHECKING:
    from holdfast.domain.story import Activity

_BY_SIGNAL = 128
_STANDARD_ERROR = 2


def configure(parser: Parser) -> None:
    parser.usage = "holdfast attempt REASON -- COMMAND ...\n       holdfast attempt --keep"
    parser.description = """\
Save the workspace and run a command. If the command succeeds, its changes are kept. If it fails,
the workspace is rolled back and the failed attempt is recorded with its reason. holdfast undo
brings the failed state back.

The exit status is that of the command: 128 plus the signal number if a signal ended it, 127 if it
does not exist, 126 if it cannot be run. In the last two cases nothing is saved.

--keep closes interrupted edits and attempts and leaves the workspace as it is. holdfast status
lists them."""
    parser.epilog = """\
examples:
  $ holdfast attempt "try the new resolver" -- ./migrate.sh && echo kept
  $ holdfast attempt "upgrade everything" -- sh -c "npm update && npm test"
  $ holdfast attempt --keep"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="REASON COMMAND",
        help="the reason; after --, the command to run",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="close interrupted attempts, and keep the workspace as it is",
    )


def run(invocation: Invocation) -> int:
    if invocation.options.keep:
        return _keep(invocation)
    reason = _reason(invocation)
    _require_command(invocation)

    # A named session must exist: with a typo, the attempt would be recorded in a new one.
    begins = invocation.options.session is None
    with invocation.open(create=begins) as opened:
        session_id = invocation.session(opened, create=begins)
        with invocation.busy("saving", opened):
            attempt = opened.edits.begin_attempt(session_id, reason)
        number = attempt.number
        try:
            status = _run_command(invocation)
        except OSError as error:
            opened.edits.keep_attempt(number)
            raise _not_run(invocation.literal[0], error, attempt) from None
        except BaseException as error:
            opened.edits.roll_back_attempt(number, type(error).__name__)
            raise
        if status == 0:
            opened.edits.keep_attempt(number)
        else:
            with invocation.busy("restoring", opened):
                why = f"{invocation.literal[0]} exited with {status}"
                opened.edits.roll_back_attempt(number, why)
        _report(invocation, attempt, status)
    return status


def _reason(invocation: Invocation) -> str:
    words, command = invocation.words, invocation.literal
    if len(words) != 1 or not command:
        raise UsageError(
            "missing REASON or COMMAND" if len(words) < 2 else "one reason is enough",
            hint='usage: holdfast attempt "try the new resolver" -- ./migrate.sh',
        )
    return words[0]


def _require_command(invocation: Invocation) -> None:
    """Refuse before saving anything if the command cannot be run."""
    import errno
    import os
    import shutil

    command = invocation.literal[0]
    place = os.path.join(invocation.directory, command) if "/" in command else command
    if shutil.which(place) is not None:
        return
    there = "/" in command and os.path.exists(place)
    raise _not_run(command, OSError(errno.EACCES, os.strerror(errno.EACCES)) if there else None)


def _not_run(
    command: str, error: OSError | None, attempt: Activity | None = None
) -> CommandNotFound | CommandNotRunnable:
    """Exit statuses as from `env` and shells, not Holdfast's own."""
    hint = "nothing was changed or saved"
    if attempt is not None:
        hint = (
            f"nothing was changed; checkpoint {short(attempt.checkpoint)} was saved before the "
            "command"
        )
    if error is None:
        return CommandNotFound(f"command not found: {command!r}", hint=hint)
    return CommandNotRunnable(f"cannot run {command}: {error.strerror}", hint=hint)


def _run_command(invocation: Invocation) -> int:
    """Run the command in the caller's directory, without a shell, with the caller's input and
    output."""
    invocation.terminal.flush()
    # Standard output may contain only one JSON value.
    output = _STANDARD_ERROR if invocation.json else None
    child = subprocess.Popen(invocation.literal, cwd=invocation.directory, stdout=output)
    try:
        ended = child.wait()
    except BaseException:
        # Ctrl-C reached the command too; let it exit on its own.
        child.wait()
        raise
    return ended if ended >= 0 else _BY_SIGNAL - ended


def _keep(invocation: Invocation) -> int:
    invocation.at_most(0)
    with invocation.open() as opened:
        kept = opened.edits.keep_interrupted(invocation.session(opened))
    if invocation.json:
        from holdfast.api.views.sessions import kept_view

        invocation.emit(kept_view(kept))
        return 0
    for one in kept:
        invocation.terminal.line(f"kept {one.kind.value} {one.number}: {visible(one.reason)}")
    if not kept:
        invocation.terminal.line("no interrupted edits or attempts")
    return 0


def _report(invocation: Invocation, attempt: Activity, status: int) -> None:
    if invocation.json:
        from holdfast.api.views.sessions import attempt_view

        invocation.emit(attempt_view(attempt, status, invocation.elapsed_ms))
        return
    aside = invocation.terminal.stderr_copy()
    if status == 0:
        mark, said = aside.tick, f"kept; the state before it: {short(attempt.checkpoint)}"
    else:
        mark = aside.paint("↩", YELLOW)
        undo = f"holdfast undo{invocation.chosen_session}{aside.yes_flag}"
        said = f"rolled back: the command exited with {status}; to get its changes back: {undo}"
    aside.line(f"{mark} {said}")
