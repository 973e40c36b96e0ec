"""A line that a person types, waited for so that no Ctrl-C is missed."""

from __future__ import annotations

import select
import sys

from holdfast.interfaces.signs_of_signals import heard, signs_of_signals


def typed_line() -> str:
    """Empty at the end of the input."""
    with signs_of_signals() as signs:
        if signs is not None:
            typed = sys.stdin.fileno()
            while typed not in select.select([typed, signs], [], [])[0]:
                heard(signs)
    return sys.stdin.readline()
