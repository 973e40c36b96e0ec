"""A line that a person types, waited for so that no Ctrl-C is missed."""

from __future__ import annotations

import select
import sys

from holdfast.interfaces.signal_wakeup import drain, wakeup_handle


def typed_line() -> str:
    """Empty at the end of the input."""
    with wakeup_handle() as wakeup:
        if wakeup is not None:
            typed = sys.stdin.fileno()
            while typed not in select.select([typed, wakeup], [], [])[0]:
                drain(wakeup)
    return sys.stdin.readline()
