"""The command line, as `holdfast` and as `python -m holdfast`.

Kept so small that a Ctrl-C has hardly a moment before somebody is there to take it.
"""

from __future__ import annotations

_INTERRUPTED = 130


def run() -> int:
    try:
        from holdfast.interfaces.cli.main import main
    except KeyboardInterrupt:
        return _INTERRUPTED
    return main()


if __name__ == "__main__":
    raise SystemExit(run())
