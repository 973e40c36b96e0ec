"""From anything that went wrong to an exit status, and to words with the way out.

Statuses are those of the error family; here are only those of errors that nobody raised on purpose:
130 for Ctrl-C, 7 for a full disk, 5 for something the system does not permit, and 1 for a bug.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from holdfast.domain.errors import HoldfastError, NoSpace, Refused

INTERRUPTED = 130
BROKEN_PIPE = 141

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class Interrupted(HoldfastError):
    """Ctrl-C, or a request to end."""

    code = "interrupted"
    exit_status = INTERRUPTED


class Bug(HoldfastError):
    """An error that nobody foresaw."""

    code = "bug"
    exit_status = 1


def as_known(error: BaseException) -> HoldfastError:
    """The error as one of the family."""
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted(
            "interrupted",
            hint="what was finished is kept; the next command puts right what was not",
        )
    if isinstance(error, OSError) and error.errno in _FULL:
        return NoSpace(f"no space left on the disk{_about(error)}", hint="free some disk space")
    if isinstance(error, OSError) and error.errno in _FORBIDDEN:
        return Refused(
            f"the system does not permit it{_about(error)}: {os.strerror(error.errno)}",
            hint="check who owns the workspace and the store, and their permissions",
        )
    return Bug(
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a bug in Holdfast; HOLDFAST_DEBUG=1 shows where it happened. "
        "Nothing that was saved is lost by it",
    )


def wants_traceback(error: HoldfastError, environment: Mapping[str, str]) -> bool:
    return isinstance(error, Bug) and bool(environment.get("HOLDFAST_DEBUG"))


def _about(error: OSError) -> str:
    if error.filename is None:
        return ""
    return f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, (str, bytes)) else ""
