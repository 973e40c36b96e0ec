"""The command line, as `holdfast` and as `python -m holdfast`.

    loading: Ctrl-C ends the process → a command: Ctrl-C unwinds it → done: it ends, with its status

Kept small, and importing only modules that Python has already loaded, so there is hardly a moment
in which Ctrl-C is not handled. An agent's hook has its own path, because the agent waits.
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

    # An exception could come anywhere: in a half-loaded module, in a callback of Python's own.
    # There is nothing to unwind yet.
    _exchange_ctrl_c(_signal.default_int_handler, leave)
    try:
        from holdfast.interfaces.cli.main import main, may_leave_at_once

        status = main(ready=lambda: _exchange_ctrl_c(leave, _signal.default_int_handler))
        _exchange_ctrl_c(_signal.default_int_handler, leave)
        if may_leave_at_once():
            os._exit(status)
    except KeyboardInterrupt:  # while the status was being set, or after it
        pass
    return status


def _exchange_ctrl_c(old: "Handler", new: "Handler") -> None:
    """Unless the parent has set what Ctrl-C does, such as the shell of a background job."""
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
