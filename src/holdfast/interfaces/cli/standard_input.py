"""Standard input: a text that is read whole, and lines that a person types."""

from __future__ import annotations

import io
import select
import sys

from holdfast.domain.errors import UsageError
from holdfast.interfaces.signal_wakeup import drain, wakeup_handle

READ_AT_MOST = 16_000_000
"""Characters: what goes on behind them may never end, and is not waited for."""


def text_on_standard_input(what: str) -> str:
    """Without the line end behind it. Bytes that are not UTF-8 are kept as escapes."""
    if sys.stdin is None:
        raise UsageError(f"there is no standard input to read the {what} from")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    text = sys.stdin.read(READ_AT_MOST + 1)
    if len(text) > READ_AT_MOST:
        raise UsageError(
            f"the {what} on standard input goes on behind {READ_AT_MOST} characters",
            hint="shorten it; long material belongs into a file of the workspace",
        )
    return text.removesuffix("\n")


def typed_line() -> str:
    """A line that a person types, waited for so that no Ctrl-C is missed; empty at the end."""
    with wakeup_handle() as wakeup:
        if wakeup is not None:
            typed = sys.stdin.fileno()
            while typed not in select.select([typed, wakeup], [], [])[0]:
                drain(wakeup)
    return sys.stdin.readline()
