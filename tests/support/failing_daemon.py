"""A daemon that kills itself, as a process: at a chosen point of the next event of an agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

POINTS = ("before the work", "between checkpoint and note", "before the answer")
AFTER_THE_ANSWER = "after the answer"
"""Reached only when the answer tells of a restore, and the hook has to confirm that."""


@contextmanager
def dying_daemon(point: str) -> Iterator[subprocess.Popen[bytes]]:
    assert point in (*POINTS, AFTER_THE_ANSWER)
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.support.failing_daemon", point], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"ready\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _run(point: str) -> None:
    from holdfast.api.automation import open_watcher
    from holdfast.app.automation.event_dedupe import EventDedupe
    from holdfast.interfaces.daemon import handlers as requests
    from holdfast.interfaces.daemon.handlers import HANDLERS, Arguments
    from holdfast.interfaces.daemon.instance import listen
    from holdfast.interfaces.daemon.server import Daemon

    if point == "between checkpoint and note":
        EventDedupe.note = _die  # type: ignore[method-assign]

    def hook(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
        if point == "before the work":
            _die()
        answer = HANDLERS["hook"](daemon, arguments)
        if point == "before the answer":
            _die()
        return answer

    if point == AFTER_THE_ANSWER:
        requests.receive_confirmation = _die

    handlers = {**HANDLERS, "hook": hook}
    daemon = Daemon(listen(os.environ), open_watcher(), os.environ, idle_s=0, handlers=handlers)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    daemon.run()


if __name__ == "__main__":
    _run(sys.argv[1])
