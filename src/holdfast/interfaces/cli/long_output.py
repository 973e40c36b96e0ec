"""Long output: paged for people, and all or nothing for programs.

The pager is `$HOLDFAST_PAGER`, else `$PAGER`, else `less -FRX`, which exits if one screen is
enough. An empty value or `cat` turns paging off. Pipes, `--json` and missing pagers are not paged.

Programs get complete output only: half a JSON document cannot be parsed, but half a patch can be
applied. The output is collected in a temporary file, at first in memory, and then written.
Guarantee: if generating it fails, nothing is written, and memory is bounded. Not guaranteed: that
the reader gets the end if writing itself is interrupted.
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

_DEFAULT_PAGER = "less"
_LESS_OPTIONS = "FRX"
"""Exit if one screen is enough, pass colours through, leave the text on the screen."""
_IN_MEMORY_BYTES = 4 << 20
_AT_ONCE_BYTES = 256 << 10


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """The words of the command; empty if paging is off."""
    import shlex
    from shutil import which

    chosen = environment.get("HOLDFAST_PAGER", environment.get("PAGER", _DEFAULT_PAGER))
    try:
        words = shlex.split(chosen)
    except ValueError:  # an unclosed quote
        return []
    if not words or words == ["cat"] or which(words[0]) is None:
        return []
    return words


@contextmanager
def paged(terminal: Terminal) -> Iterator[None]:
    """Standard output inside the block goes through the pager."""
    words = pager_command(os.environ) if terminal.out_is_live else []
    if not words:
        yield
        return
    import subprocess  # late: programs that read JSON have no pager

    terminal.flush()
    how = {"LESS": os.environ.get("LESS", _LESS_OPTIONS), "LV": os.environ.get("LV", "-c")}
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, **how})
    assert pager.stdin is not None
    stream = io.TextIOWrapper(pager.stdin, encoding="utf-8", errors="backslashreplace")
    try:
        with terminal.redirected(stream):
            yield
    except BrokenPipeError:
        pass  # the reader closed the pager
    except KeyboardInterrupt as error:
        # Ctrl-C is meant for the pager, which stops waiting for input. This is not an error.
        if type(error) is not KeyboardInterrupt:
            raise
    finally:
        _wait_for(pager, stream)


def _wait_for(pager: subprocess.Popen[bytes], stream: io.TextIOWrapper) -> None:
    """Wait until the user quits the pager, which handles Ctrl-C meanwhile."""
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
    """Collects chunks, and writes them unchanged at the end of the block."""
    from tempfile import SpooledTemporaryFile  # late: only large answers need it

    with SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
        yield kept.write
        kept.seek(0)
        terminal.flush()
        while piece := kept.read(_AT_ONCE_BYTES):
            terminal.write_bytes(piece)
