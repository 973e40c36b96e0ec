"""Turns every failure into an exit status, a message and a hint.

The error family defines the statuses. Unexpected errors add: 130 for Ctrl-C, 143 and 129 for
SIGTERM and SIGHUP, 7 for a full disk, 5 for missing permissions, and 1 for a bug.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from holdfast.domain.errors import HoldfastError, NoSpace, Refused
from holdfast.interfaces.cli.terminal import OutputFailed

HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143
BROKEN_PIPE = 141

_FULL = (errno.ENOSPC, errno.EDQUOT)
_AFTER_A_SIGNAL = "Finished work is kept. The next command repairs anything left unfinished"
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class Interrupted(HoldfastError):
    """Ctrl-C."""

    code = "interrupted"
    exit_status = INTERRUPTED


class Declined(Refused):
    """The user answered no. This is not an error, but the command did not do its work."""


class Terminated(HoldfastError):
    """A request to exit, as `kill` sends it."""

    code = "terminated"
    exit_status = TERMINATED


class HungUp(HoldfastError):
    """The terminal is gone."""

    code = "hung_up"
    exit_status = HUNG_UP


class EndRequest(KeyboardInterrupt):
    """Unwinds like Ctrl-C, and records the signal that caused it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Bug(HoldfastError):
    """An unexpected error."""

    code = "bug"
    exit_status = 1


def to_holdfast_error(error: BaseException) -> HoldfastError:
    """The error as a member of the family."""
    if isinstance(error, HoldfastError):
        return error
    error = _signal_within(error) or error
    if isinstance(error, EndRequest):
        import signal  # late: its numbers become an enum while it loads

        kind = HungUp if error.number == signal.SIGHUP else Terminated
        name = signal.Signals(error.number).name
        if truth := _engine_note(error):
            return kind(f"interrupted by {name}; {truth}")
        return kind(f"interrupted by {name}", hint=_AFTER_A_SIGNAL)
    if isinstance(error, KeyboardInterrupt):
        if truth := _engine_note(error):
            return Interrupted(f"cancelled; {truth}")
        return Interrupted("interrupted", hint=_AFTER_A_SIGNAL)
    if isinstance(error, OutputFailed):
        return _lost_answer(error)
    if isinstance(error, OSError) and error.errno in _FULL:
        return NoSpace(
            f"no space left on the disk{_file_name_suffix(error)}", hint="free some disk space"
        )
    if isinstance(error, OSError) and error.errno in _FORBIDDEN:
        return Refused(
            f"permission denied{_file_name_suffix(error)}: {os.strerror(error.errno)}",
            hint="check the owner and permissions of the workspace and the store",
        )
    return Bug(
        f"unexpected {type(error).__name__}: {error}",
        hint=(
            "this is a bug in Holdfast. Your checkpoints are safe. For details, set "
            "HOLDFAST_DEBUG=1"
        ),
    )


def _engine_note(error: KeyboardInterrupt) -> str | None:
    """The note that interrupted work, such as a restore, left about its result."""
    notes: list[str] = getattr(error, "__notes__", [])
    return notes[0] if notes else None


def _signal_within(error: BaseException) -> KeyboardInterrupt | None:
    """Up to Python 3.11, an exception during class creation, even Ctrl-C, becomes a
    `RuntimeError`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return cause
        cause = cause.__cause__ if isinstance(cause, RuntimeError) else None
    return None


def _lost_answer(error: OutputFailed) -> HoldfastError:
    kind = NoSpace if error.errno in _FULL else Refused
    return kind(
        f"cannot write the output: {error.strerror}",
        hint="the command itself finished; only its output is lost",
    )


def wants_traceback(error: HoldfastError, environment: Mapping[str, str]) -> bool:
    return isinstance(error, Bug) and bool(environment.get("HOLDFAST_DEBUG"))


def _file_name_suffix(error: OSError) -> str:
    if error.filename is None:
        return ""
    return f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, (str, bytes)) else ""
