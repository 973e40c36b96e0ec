"""The process that an agent starts for each event: ask the daemon, else do the work here.

Nothing is imported that the daemon's answer does not need. Guarantees: status 0, whatever happens;
told to end, it still answers, and notes what was not done.
"""

from __future__ import annotations

import gc
import os
import time

from holdfast.interfaces.daemon.hook_client import MOST_SENT_BYTES, NoAnswer, ask_about

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Sequence
    from types import FrameType
else:
    try:  # what `signal` is written on top of, without what that brings along
        import _signal as signals
    except ImportError:  # a Python that keeps it elsewhere
        import signal as signals

_BLOCK_BYTES = 1 << 16
_GARBAGE_THRESHOLD = 50_000


class ToldToEnd(BaseException):
    """A signal asked the process to end."""


def run_hook(arguments: Sequence[str]) -> int:
    """Answer one event; always 0."""
    gc.set_threshold(_GARBAGE_THRESHOLD)  # short: looking for garbage is wasted time
    taken = b""
    answered = False

    def tell(text: bytes) -> bool:
        nonlocal answered
        answered = True
        return _write(text + b"\n" if text else b"")

    try:
        _settle_in()
        began_ns = time.time_ns()
        taken = _read_input()
        ask_about(arguments, taken, began_ns, tell)
    except NoAnswer as reason:
        return _work_here(arguments, taken, begin_daemon=reason.missing)
    except BaseException as error:
        return 0 if answered else _give_up(arguments, taken, error)
    return 0


def _work_here(arguments: Sequence[str], taken: bytes, *, begin_daemon: bool) -> int:
    try:
        from holdfast.interfaces.hooks.in_process import answer

        return answer(arguments, own_process=True, taken=taken, begin_daemon=begin_daemon)
    except BaseException:  # a signal between two lines
        return 0


def _give_up(arguments: Sequence[str], taken: bytes, error: BaseException) -> int:
    """Told to end while the daemon was at work, or the input could not be read."""
    try:
        from holdfast.interfaces.hooks.in_process import answer_without_work

        answer_without_work(arguments, taken, error)
    except BaseException:  # another signal: the agent goes on
        return 0
    return 0


def _settle_in() -> None:
    # Started without them, the next file opened would take their numbers.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for number in (signals.SIGTERM, signals.SIGHUP):
        if signals.getsignal(number) == signals.SIG_DFL:
            signals.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    raise ToldToEnd(f"told to end by signal {number}")


def _read_input() -> bytes:
    """The event; of one that is too large for the daemon, just the beginning."""
    blocks = []
    size = 0
    while size <= MOST_SENT_BYTES:
        block = os.read(0, _BLOCK_BYTES)
        if not block:
            break
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)


def _write(data: bytes) -> bool:
    """An answer that nobody takes is no reason to fail; whether it was taken."""
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True
