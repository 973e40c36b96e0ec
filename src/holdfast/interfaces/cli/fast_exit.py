"""Leaving a process whose command is done, sooner than Python itself would."""

from __future__ import annotations

import atexit
import sys
import threading

_TOOL_NUMBERS = range(6)


def may_leave_at_once() -> bool:
    """Whether Python would only take its modules apart, which lasts as long as many a command.

    What a command opened it has closed by now, and what it said is written. A thread that still
    runs, a function to be called in the end, a debugger or profiler, an output that cannot be
    written: each gets the usual end.
    """
    if threading.active_count() > 1 or atexit._ncallbacks() or sys.flags.inspect:
        return False
    if sys.gettrace() is not None or sys.getprofile() is not None or _is_monitored():
        return False
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _is_monitored() -> bool:
    """From Python 3.12 on, profilers and debuggers have a second way to take part."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(map(monitoring.get_tool, _TOOL_NUMBERS))
