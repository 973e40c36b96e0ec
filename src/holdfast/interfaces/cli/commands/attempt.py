"""`holdfast attempt REASON -- COMMAND`: run a command, and take everything back if it fails."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from holdfast.domain.errors import CommandNotFound, CommandNotRunnable, UsageError
from holdfast.domain.ids import short
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import YELLOW, visible

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.domain.story import Activity

_BY_SIGNAL = 128
_STANDARD_ERROR = 2


def configure(parser: Parser) -> None:
    parser.usage = "holdfast attempt REASON -- COMMAND ...\n       holdfast attempt --keep"
    parser.description = """\
Save the workspace, run a command, and look at its exit status: with 0 its work is kept, with any
other the workspace is taken back to what it was, and the failed attempt is recorded with its
reason. The exit status of the command becomes that of holdfast attempt; a command that a signal
ended gives 128 and the number of the signal, one that does not exist 127, one that cannot be run
126: then nothing is saved either. Taking back is a restore like any other: undo brings the failed
state back.

--keep settles edits and attempts whose process was cut off (holdfast status names them): the
workspace stays as it is."""
    parser.epilog = """\
examples:
  $ holdfast attempt "try the new resolver" -- ./migrate.sh && echo kept
  $ holdfast attempt "upgrade everything" -- sh -c "npm update && npm test"
  $ holdfast attempt --keep"""
    parser.add_argument(
        "words", nargs="*", metavar="REASON COMMAND", help="why; behind --, what to run"
    )
    parser.add_argument(
        "--keep", action="store_true", help="settle what was cut off: it stays as it is"
    )


def run(invocation: Invocation) -> int:
    if invocation.options.keep:
        return _keep(invocation)
    reason = _reason(invocation)
    _require_command(invocation)

    # A session that is named has to be there: a typo would keep the attempt where nobody looks.
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
            opened.edits.put_back_attempt(number, type(error).__name__)
            raise
        if status == 0:
            opened.edits.keep_attempt(number)
        else:
            with invocation.busy("restoring", opened):
                why = f"{invocation.literal[0]} ended with {status}"
                opened.edits.put_back_attempt(number, why)
        _tell(invocation, opened, attempt, status)
    return status


def _reason(invocation: Invocation) -> str:
    words, command = invocation.words, invocation.literal
    if len(words) != 1 or not command:
        raise UsageError(
            "the reason or the command is missing" if len(words) < 2 else "one reason is enough",
            hint='for example: holdfast attempt "try the new resolver" -- ./migrate.sh',
        )
    return words[0]


def _require_command(invocation: Invocation) -> None:
    """Nothing is saved for a command that cannot be run."""
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
    """With the statuses that `env` and shells give, which are none of holdfast's own."""
    hint = "nothing was changed, and nothing was saved"
    if attempt is not None:
        hint = (
            f"nothing was changed; the checkpoint made before it stays: {short(attempt.checkpoint)}"
        )
    if error is None:
        return CommandNotFound(f"there is no command {command!r}", hint=hint)
    return CommandNotRunnable(f"{command} cannot be run: {error.strerror}", hint=hint)


def _run_command(invocation: Invocation) -> int:
    """In the directory of the caller, without a shell, with its own input and output."""
    invocation.terminal.flush()
    # One JSON value is all that may stand on standard output.
    output = _STANDARD_ERROR if invocation.json else None
    child = subprocess.Popen(invocation.literal, cwd=invocation.directory, stdout=output)
    try:
        ended = child.wait()
    except BaseException:
        # Ctrl-C reached the command as well; it is given the time to end by itself.
        child.wait()
        raise
    return ended if ended >= 0 else _BY_SIGNAL - ended


def _keep(invocation: Invocation) -> int:
    invocation.at_most(0)
    with invocation.open() as opened:
        kept = opened.edits.keep_interrupted(invocation.session(opened))
    if invocation.json:
        from holdfast.api.views.sessions import kept_view

        invocation.emit({"kept": kept_view(kept)})
        return 0
    for one in kept:
        invocation.terminal.line(f"kept {one.kind.value} {one.number}: {visible(one.reason)}")
    if not kept:
        invocation.terminal.line("nothing was cut off")
    return 0


def _tell(invocation: Invocation, opened: Workspace, attempt: Activity, status: int) -> None:
    if invocation.json:
        from holdfast.api.views.sessions import attempt_view

        invocation.emit(attempt_view(attempt, status, invocation.elapsed_ms))
        return
    aside = invocation.terminal.aside()
    if status == 0:
        mark, said = aside.tick, f"kept; before it: {short(attempt.checkpoint)}"
    else:
        mark = aside.paint("↩", YELLOW)
        undo = f"holdfast undo{invocation.chosen_session}{aside.yes_flag}"
        said = f"taken back: the command ended with {status} (the failed state: {undo})"
    aside.line(f"{mark} {said}")
