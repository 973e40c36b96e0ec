"""Runs operations in processes that end by SIGKILL at one exact call, or at one instant.

    python -m tests.torture.kill_server      a JSON request per line in, a JSON answer per line out

A process dies before a call, after it, or after half of a write; calls are those of the file system
port and of SQLite, numbered together. Or a timer kills it, which can hit anywhere. Nothing of the
dying process runs after its death, and what it had acknowledged by then is in the answer.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.engine.retention.deletion import delete
from holdfast.engine.undo.undo import undo_request
from tests.support.forking_server import ForkingServer, Said, Say, serve
from tests.torture.interception import DiskCall, beyond_the_port, intercepted, let_pass
from tests.torture.scenes import SESSION, opened, restore, save
from tests.torture.searching import look_up
from tests.torture.telling import Teller

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Order:
    """What to do, and when to die: `how` is `before`, `after` or `half` of call number `at`. With
    `git`, which is how a restore treats it, the calls of that component count as well."""

    project: str
    home: str
    action: str
    argument: str = ""
    at: int = 0
    how: str = "before"
    after_s: float = 0.0
    rounds: int = 1
    git: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """`made` is the checkpoint or record that was acknowledged before death, if any was; `told`
    how many steps of a story were."""

    died: bool
    made: str | None = None
    error: str | None = None
    calls: int = 0
    told: int = 0


class KillServer(ForkingServer[Answer]):
    def __init__(self) -> None:
        super().__init__("tests.torture.kill_server", Answer)

    def ask(self, order: Order) -> Answer:
        return self.asked(asdict(order))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _run(fields: Said, say: Say) -> None:
    order = Order(**fields)

    def kill(call: DiskCall, run: Callable[[int], T]) -> T:
        if call.number != order.at:
            return let_pass(call, run)
        if order.how == "half":
            run((call.size or 0) // 2)
        elif order.how == "after":
            let_pass(call, run)
        _die()
        raise AssertionError("unreachable")

    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends a process as SIGKILL does
    also = beyond_the_port(order.action, git=bool(order.git))
    with intercepted(kill, also) as turnstile:
        try:
            with opened(Path(order.project), Path(order.home), create=True) as work:
                if order.after_s:
                    signal.setitimer(signal.ITIMER_REAL, order.after_s)
                _act(work, order, say)
        except Exception as error:
            say("error", f"{type(error).__name__}: {error}")
        say("calls", len(turnstile.calls))


def _act(work: OpenWorkspace, order: Order, say: Say) -> None:
    if order.action == "save":
        say("made", save(work).id)
    elif order.action == "restore":
        say("made", restore(work, order.argument, order.git).record)
    elif order.action == "undo":
        say("made", work.engine.restore(undo_request(work.engine.vault, SESSION)).record)
    elif order.action == "delete":
        engine = work.engine
        delete(engine, engine.resolve(SESSION, order.argument))
        say("made", order.argument)
    elif order.action == "tell":
        for number, step in enumerate(Teller(order.argument).steps(order.rounds), start=1):
            step(work.engine.vault)
            say("told", number)
    elif order.action == "search":
        look_up(work)
    else:
        work.engine.recover()


if __name__ == "__main__":
    serve(_run)
