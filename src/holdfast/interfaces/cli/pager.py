"""Long answers at a terminal, a screen at a time, as git shows them.

`$HOLDFAST_PAGER`, else `$PAGER`, else `less -FRX`: what fits on one screen is just shown. An empty
value or `cat` switches it off. Never in a pipe, with `--json`, or where the program is missing.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from shutil import which
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.interfaces.cli.terminal import Terminal

_USUAL = "less"
_HOW_LESS_SHOWS = "FRX"
"""Leave when one screen is enough, let colours through, leave the text on the screen."""


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """The words of the command; none when nothing is to be paged."""
    chosen = environment.get("HOLDFAST_PAGER", environment.get("PAGER", _USUAL))
    try:
        words = shlex.split(chosen)
    except ValueError:  # a quote that is not closed
        return []
    if not words or words == ["cat"] or which(words[0]) is None:
        return []
    return words


@contextmanager
def paged(terminal: Terminal) -> Iterator[None]:
    """What is written to standard output within goes through the pager."""
    words = pager_command(os.environ) if terminal.out_is_live else []
    if not words:
        yield
        return
    terminal.flush()
    how = {"LESS": os.environ.get("LESS", _HOW_LESS_SHOWS), "LV": os.environ.get("LV", "-c")}
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, **how})
    assert pager.stdin is not None
    stream = io.TextIOWrapper(pager.stdin, encoding="utf-8", errors="backslashreplace")
    try:
        with terminal.writing_to(stream):
            yield
    except BrokenPipeError:
        pass  # whoever reads has seen enough
    except KeyboardInterrupt as error:
        # Ctrl-C is for the pager, which stops waiting for more: there is nothing to complain about.
        if type(error) is not KeyboardInterrupt:
            raise
    finally:
        _wait_for(pager, stream)


def _wait_for(pager: subprocess.Popen[bytes], stream: io.TextIOWrapper) -> None:
    """Until its reader leaves it: Ctrl-C is the pager's there."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):
            stream.close()
        pager.wait()
    finally:
        signal.signal(signal.SIGINT, before)
