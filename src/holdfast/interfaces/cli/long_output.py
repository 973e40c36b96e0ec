"""Long output: a screen at a time for people, and all or nothing for programs.

`$HOLDFAST_PAGER`, else `$PAGER`, else `less -FRX`: what fits on one screen is just shown. An empty
value or `cat` switches it off. Never in a pipe, with `--json`, or where the program is missing.

For programs the pieces go into a temporary file, the first of them in memory, and from there to
the output when it is whole: half of a JSON document cannot be read, and half of a patch can be
applied. Guarantee: nothing is on the output when making it fails, and memory does not grow with it.
Not guaranteed: that the reader gets the end of it, should the writing itself be cut off.
"""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

    from holdfast.interfaces.cli.terminal import Terminal

_USUAL = "less"
_HOW_LESS_SHOWS = "FRX"
"""Leave when one screen is enough, let colours through, leave the text on the screen."""
_IN_MEMORY_BYTES = 4 << 20
_AT_ONCE_BYTES = 256 << 10


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """The words of the command; none when nothing is to be paged."""
    import shlex
    from shutil import which

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
    import subprocess  # late: programs that read JSON have no pager

    terminal.flush()
    how = {"LESS": os.environ.get("LESS", _HOW_LESS_SHOWS), "LV": os.environ.get("LV", "-c")}
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, **how})
    assert pager.stdin is not None
    stream = io.TextIOWrapper(pager.stdin, encoding="utf-8", errors="backslashreplace")
    try:
        with terminal.writing_to(stream):
            yield
    except BrokenPipeError:
        pass  # the reader has seen enough
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


@contextmanager
def whole_output(terminal: Terminal) -> Iterator[Callable[[bytes], object]]:
    """Takes the pieces, and writes them at the end of the block, exactly as they are."""
    from tempfile import SpooledTemporaryFile  # late: only large answers are made this way

    with SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
        yield kept.write
        kept.seek(0)
        terminal.flush()
        while piece := kept.read(_AT_ONCE_BYTES):
            terminal.write_bytes(piece)
