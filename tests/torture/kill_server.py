"""Runs operations in processes that end by SIGKILL at one exact call, or at one instant.

    python -m tests.torture.kill_server      a JSON request per line in, a JSON answer per line out

The server has one thread and forks for each request, so a thousand deaths cost seconds. A process
dies before a call, after it, or after half of a write; calls are those of the file system port and
of SQLite, numbered together. Or a timer kills it, which can hit anywhere. Nothing of the dying
process runs after its death, and what it had acknowledged by then is in the answer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from holdfast.bootstrap import OpenWorkspace
from tests.torture.campaign import ROOT
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
    made: str | None
    error: str | None
    calls: int
    told: int = 0


class KillServer:
    """The test's side: ask, get an answer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.kill_server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, order: Order) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(order)), file=self._process.stdin, flush=True)
        return Answer(**json.loads(self._process.stdout.readline()))

    def __enter__(self) -> KillServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _serve() -> None:
    for line in sys.stdin:
        print(json.dumps(asdict(_fork(Order(**json.loads(line))))), flush=True)


def _fork(order: Order) -> Answer:
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_fd)
        status = 1
        try:
            _run(order, write_fd)
            status = 0
        finally:
            os._exit(status)
    os.close(write_fd)
    with os.fdopen(read_fd, "rb") as pipe:
        said = dict(json.loads(line) for line in pipe.read().splitlines())
    _, status = os.waitpid(child, 0)
    return Answer(
        os.WIFSIGNALED(status),
        said.get("made"),
        said.get("error"),
        said.get("calls", 0),
        said.get("told", 0),
    )


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _run(order: Order, pipe: int) -> None:
    def say(key: str, value: object) -> None:
        os.write(pipe, json.dumps([key, value]).encode() + b"\n")

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


def _act(work: OpenWorkspace, order: Order, say: Callable[[str, object], None]) -> None:
    if order.action == "save":
        say("made", save(work).id)
    elif order.action == "restore":
        say("made", restore(work, order.argument, order.git).record)
    elif order.action == "undo":
        say("made", work.engine.restore(work.engine.undo_request(SESSION)).record)
    elif order.action == "delete":
        engine = work.engine
        engine.delete(SESSION, engine.resolve(SESSION, order.argument))
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
    _serve()
