"""The command line, as `holdfast` and as `python -m holdfast`.

    loading: Ctrl-C ends the process → a command: Ctrl-C unwinds it → done: it ends, as it was told

Kept so small, importing only what Python has loaded by itself, that Ctrl-C has hardly a moment
before somebody is there to take it. An agent's hook takes a way of its own, because the agent
waits.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], object]
else:
    import _signal  # what `signal` is made of, and built in: that one would have to be read first

_INTERRUPTED = 130
_FOR_PEOPLE = frozenset(("-h", "--help", "--version"))


def run() -> int:
    if sys.argv[1:2] == ["hook"] and _FOR_PEOPLE.isdisjoint(sys.argv):
        _answer_agent()
    status = _INTERRUPTED

    def leave(number: int, frame: "FrameType | None") -> None:
        os._exit(status)

    # An exception would need somebody who takes it wherever it comes: in a module half loaded, in a
    # callback of Python's own. There is nothing to unwind yet.
    _exchange_ctrl_c(_signal.default_int_handler, leave)
    try:
        from holdfast.interfaces.cli.main import main, may_leave_at_once

        status = main(ready=lambda: _exchange_ctrl_c(leave, _signal.default_int_handler))
        _exchange_ctrl_c(_signal.default_int_handler, leave)
        if may_leave_at_once():
            os._exit(status)
    except KeyboardInterrupt:  # while it was being told, or when all was told
        pass
    return status


def _exchange_ctrl_c(old: "Handler", new: "Handler") -> None:
    """Unless somebody else has decided what Ctrl-C does, such as the shell of a background job."""
    if _signal.getsignal(_signal.SIGINT) is old:
        try:
            _signal.signal(_signal.SIGINT, new)
        except ValueError:  # a thread, which no signal reaches
            return


def _answer_agent() -> None:
    """Does not return: what Python would tidy up at its end is tidied up, and an agent waits."""
    try:
        from holdfast.interfaces.daemon.hook_client import run_hook

        run_hook(sys.argv[2:])
    except (
        BaseException
    ) as error:  # a signal while loading, a broken installation: the agent goes on
        os.write(2, f"holdfast: not protected: {error!r}\n".encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    raise SystemExit(run())
