"""The command line, as `holdfast` and as `python -m holdfast`.

Kept so small that a Ctrl-C has hardly a moment before somebody is there to take it. An agent's hook
takes a way of its own, because the agent waits.
"""

from __future__ import annotations

import os
import sys

_INTERRUPTED = 130
_FOR_PEOPLE = frozenset(("-h", "--help", "--version"))


def run() -> int:
    if sys.argv[1:2] == ["hook"] and _FOR_PEOPLE.isdisjoint(sys.argv):
        _answer_agent()
    try:
        from holdfast.interfaces.cli.main import main
    except KeyboardInterrupt:
        return _INTERRUPTED
    status = main()
    if _nobody_waits_for_the_end():
        os._exit(status)
    return status


def _nobody_waits_for_the_end() -> bool:
    """Whether Python would only take its modules apart, which lasts as long as many a command.

    What a command opened it has closed by now, and what it said is written. A thread that still
    runs, a function to be called in the end, a debugger or profiler, an output that cannot be
    written: each gets the usual end.
    """
    import atexit
    import threading

    if threading.active_count() > 1 or atexit._ncallbacks() or sys.flags.inspect:
        return False
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return False
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _answer_agent() -> None:
    """Does not return: what Python would tidy up at its end is tidied up, and an agent waits."""
    try:
        from holdfast.interfaces.hooks.process import run_hook

        run_hook(sys.argv[2:])
    except (
        BaseException
    ) as error:  # a signal while loading, a broken installation: the agent goes on
        os.write(2, f"holdfast: not protected: {error!r}\n".encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    raise SystemExit(run())
