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
    status = _INTERRUPTED
    try:
        from holdfast.interfaces.cli.main import main

        status = main()
        from holdfast.interfaces.cli.leaving import may_leave_at_once

        if may_leave_at_once():
            os._exit(status)
    except KeyboardInterrupt:  # before anybody was there to tell it, or when all was told
        pass
    return status


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
