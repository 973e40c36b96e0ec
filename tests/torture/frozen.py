"""A process that freezes at one exact call, and others that meet it.

python -m tests.torture.frozen PROJECT HOME      a JSON request per line in, an answer per line out

freeze   start an operation that stops itself (SIGSTOP) at a call; says its process id, whether
         it holds the store's lock, or that it ended before it came to that call
command  run a command of the command line in a process of its own
wait     start an operation that waits for the lock as long as it takes
thaw     let the frozen one go on (SIGCONT), and wait for it and for the one that waits
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from holdfast.adapters.local import sqlite_connection
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.engine.retention.deletion import delete
from holdfast.interfaces.cli.main import main as run_command
from tests.torture.campaign import ROOT
from tests.torture.interception import DiskCall, intercepted, let_pass
from tests.torture.scenes import SESSION, restore, save

T = TypeVar("T")
PURPOSE = "a frozen agent"
_PATIENCE_S = 300.0
_SHORT_WAIT_MS = 50


class Freezer:
    """The test's side."""

    def __init__(self, project: Path, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.frozen", str(project), str(home)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: str, **arguments: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([what, arguments]), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __enter__(self) -> Freezer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()


class _Child:
    """A forked process whose last word is a JSON object."""

    def __init__(self, work: Callable[[], dict[str, Any]]) -> None:
        read_fd, write_fd = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read_fd)
            try:
                try:
                    said = work()
                except Exception as error:
                    said = {"error": f"{type(error).__name__}: {error}"}
                os.write(write_fd, json.dumps(said).encode())
            finally:
                os._exit(0)
        os.close(write_fd)
        self._pipe = os.fdopen(read_fd, "rb")

    def stops(self) -> bool:
        """Wait until it stops or ends; whether it stopped."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    @property
    def has_spoken(self) -> bool:
        return bool(select.select([self._pipe], [], [], 0)[0])

    def said(self, *, reap: bool = True) -> dict[str, Any]:
        with self._pipe:
            answer: dict[str, Any] = json.loads(self._pipe.read())
        if reap:
            os.waitpid(self.pid, 0)
        return answer


class _Server:
    def __init__(self, project: Path, home: Path) -> None:
        self._project = project
        self._home = home
        self._frozen: _Child | None = None
        self._waiting: _Child | None = None

    def _open(self, purpose: str) -> OpenWorkspace:
        environment = {"HOLDFAST_HOME": str(self._home)}
        work = open_workspace(self._project, create=False, environment=environment, purpose=purpose)
        work.store.lock_timeout_s = _PATIENCE_S
        return work

    def freeze(self, action: str, argument: str, at: int) -> dict[str, Any]:
        def gate(call: DiskCall, run: Callable[[int], T]) -> T:
            if call.number == at:
                os.kill(os.getpid(), signal.SIGSTOP)
            return let_pass(call, run)

        def act() -> dict[str, Any]:
            with intercepted(gate) as turnstile, self._open(PURPOSE) as work:
                made = _do(work, action, argument)
            return {"made": made, "calls": len(turnstile.calls)}

        self.end()
        child = _Child(act)
        if not child.stops():
            return {"frozen": None, **child.said(reap=False)}
        self._frozen = child
        return {"frozen": child.pid, "held": self._is_held()}

    def _is_held(self) -> bool:
        (store,) = (self._home / "stores").iterdir()
        with (store / "lock").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def command(self, arguments: list[str]) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            out, err = io.StringIO(), io.StringIO()
            sqlite_connection._BUSY_TIMEOUT_MS = _SHORT_WAIT_MS
            os.environ["HOLDFAST_HOME"] = str(self._home)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = run_command(["-C", str(self._project), "--json", *arguments])
            return {"status": status, "out": out.getvalue(), "err": err.getvalue()}

        return _Child(act).said()

    def wait(self, action: str, argument: str) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            with self._open("a patient agent") as work:
                return {"made": _do(work, action, argument)}

        self._waiting = _Child(act)
        return {}

    def thaw(self) -> dict[str, Any]:
        assert self._frozen is not None
        assert self._waiting is not None
        early = self._waiting.has_spoken
        os.kill(self._frozen.pid, signal.SIGCONT)
        frozen, self._frozen = self._frozen, None
        return {"early": early, "frozen": frozen.said(), "waiting": self._waiting.said()}

    def end(self) -> None:
        """A test that failed leaves a frozen process behind."""
        if self._frozen is not None:
            os.kill(self._frozen.pid, signal.SIGKILL)
            os.waitpid(self._frozen.pid, 0)
            self._frozen = None


def _do(work: OpenWorkspace, action: str, argument: str) -> str:
    if action == "save":
        return save(work).id
    if action == "delete":
        delete(work.engine, work.engine.resolve(SESSION, argument))
        return argument
    return restore(work, argument).record


def main() -> None:
    server = _Server(Path(sys.argv[1]), Path(sys.argv[2]))
    for line in sys.stdin:
        what, arguments = json.loads(line)
        print(json.dumps(getattr(server, what)(**arguments)), flush=True)
    server.end()


if __name__ == "__main__":
    main()
