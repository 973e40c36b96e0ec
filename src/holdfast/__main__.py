"""The command line, as `holdfast` and as `python -m holdfast`.

Kept so small that a Ctrl-C has hardly a moment before somebody is there to take it. An agent's hook
takes a way of its own, because the agent waits.
"""

from __future__ import annotations

import sys

_INTERRUPTED = 130
_FOR_PEOPLE = frozenset(("-h", "--help", "--version"))


def run() -> int:
    if sys.argv[1:2] == ["hook"] and _FOR_PEOPLE.isdisjoint(sys.argv):
        from holdfast.interfaces.hooks.process import run_hook

        return run_hook(sys.argv[2:])
    try:
        from holdfast.interfaces.cli.main import main
    except KeyboardInterrupt:
        return _INTERRUPTED
    return main()


if __name__ == "__main__":
    raise SystemExit(run())
