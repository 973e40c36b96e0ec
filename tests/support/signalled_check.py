"""Run a check that is told to end at each instruction of the wait for its process, one at a time.

Started as a process: a wait that never ends is ended from outside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from holdfast.app.automation import auto_restore

INSTRUCTIONS = 60
"""More than one look at the process takes, so that the second look is reached."""
_LOOK_FOR_SIGNALS_S = 0.01


class StopSignal(BaseException):
    """What a hook's signal handler raises."""


def told_at(instruction: int) -> bool:
    """Whether the signal, arriving before this instruction of the wait, ends the check."""
    seen = 0

    def each(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        nonlocal seen
        seen += event == "opcode"
        if seen == instruction:
            sys.settrace(None)
            frame.f_trace = None
            os.kill(os.getpid(), signal.SIGTERM)
        return each

    def calls(frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:
        if frame.f_code is not subprocess.Popen._wait.__code__:  # type: ignore[attr-defined]
            return None
        frame.f_trace_opcodes = True
        return each

    sys.settrace(calls)
    try:
        auto_restore.run_check(["sleep", "600"], Path.cwd(), 60.0)
    except StopSignal:
        return True
    finally:
        sys.settrace(None)
    return False


def _end(number: int, frame: FrameType | None) -> None:
    raise StopSignal


if __name__ == "__main__":
    auto_restore._LOOK_FOR_SIGNALS_S = _LOOK_FOR_SIGNALS_S
    signal.signal(signal.SIGTERM, _end)
    for instruction in range(1, INSTRUCTIONS + 1):
        assert told_at(instruction), instruction
