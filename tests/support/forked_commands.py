"""Running commands and hooks in processes of their own, which are forked instead of started.

    a server imports Holdfast once → it forks for each call → it sends the status of the command

That saves nine tenths of the time, because nothing is imported again. Everything else is the
command's own: input, output, directory, environment, signals and exit, and a `sitecustomize` that a
test puts on PYTHONPATH. Not for tests of imports, of the parent process or of its privileges.

Where something else starts the command, such as a client of the Model Context Protocol, it starts
`forked_command_program.py`, which passes its files and signals on.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from tests.support.forking_server import ROOT
from tests.support.hook_process import HookAnswer, event_bytes, inherited_variables

_STDERR = 2
_MCP = "holdfast.interfaces.mcp"
_SELDOM_USED = (_MCP, "holdfast.testing")
_PROGRAM = Path(__file__).with_name("forked_command_program.py")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and what it wrote."""

    status: int
    out: bytes
    err: bytes


def run_command(
    arguments: Sequence[str],
    directory: Path,
    variables: Mapping[str, str],
    given: bytes,
    *,
    inherited: Sequence[int] = (),
) -> Outcome:
    """Run a command; it and its children inherit the files `inherited`."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        stdin.write(given)
        stdin.seek(0)
        files = [stdin.fileno(), out.fileno(), err.fileno(), *inherited]
        with _started(arguments, directory, variables, files) as server:
            _, status = _read_all(server).split()
        out.seek(0)
        err.seek(0)
        return Outcome(int(status), out.read(), err.read())


@contextmanager
def running_command(
    arguments: Sequence[str], directory: Path, variables: Mapping[str, str]
) -> Iterator[IO[str]]:
    """What a command writes while it runs. It is asked to end with the block."""
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as out, open(os.devnull, "rb") as nothing:
        files = [nothing.fileno(), writing, _STDERR]
        with _started(arguments, directory, variables, files) as server:
            os.close(writing)
            process = int(_read_line(server))
            try:
                yield out
            finally:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
                _read_all(server)


def program_of(*arguments: str) -> list[str]:
    """What to start instead of `python -m holdfast ARGUMENTS`."""
    server = _server(with_mcp="mcp" in arguments)
    return [sys.executable, "-IS", str(_PROGRAM), server, *arguments]


@contextmanager
def _started(
    arguments: Sequence[str], directory: Path, variables: Mapping[str, str], files: Sequence[int]
) -> Iterator[socket.socket]:
    """Sends the number of the command's process, and its status when it has ended."""
    call = {"arguments": arguments, "directory": str(directory), "variables": dict(variables)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(_server())
        socket.send_fds(server, [b"\0"], files)
        server.sendall(json.dumps(call).encode())
        server.shutdown(socket.SHUT_WR)
        yield server


def call_hook(
    agent: str,
    event: Mapping[str, Any] | bytes,
    workspace: Path,
    *,
    environment: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
) -> HookAnswer:
    """Run the hook and wait for everything it left running: its children hold the pipe."""
    variables = {**inherited_variables(), **(environment or {})}
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as left_running:
        try:
            command = ("hook", agent, *arguments)
            given = event_bytes(event)
            done = run_command(command, workspace, variables, given, inherited=[writing])
        finally:
            os.close(writing)
        assert left_running.read() == b""
    return HookAnswer(done.status, done.out.decode(), done.err.decode())


@cache
def _server(*, with_mcp: bool = False) -> str:
    """The address of this test worker's server, which ends with the worker."""
    address = os.path.join(tempfile.mkdtemp(prefix="hf-", dir="/tmp"), "commands")
    # Without the `sitecustomize` of the test that happens to need it first.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forked_commands", address, *([_MCP] * with_mcp)],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read() == b"ready"
    _running.append(process)
    return address


_running: list[subprocess.Popen[bytes]] = []
"""The input of the server stays open until the worker ends."""


def _read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def _read_line(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1).strip(), b""))


def _serve(address: str, *wanted: str) -> None:
    for package in pkgutil.walk_packages(importlib.import_module("holdfast").__path__, "holdfast."):
        if package.name.startswith(wanted) or not package.name.startswith(_SELDOM_USED):
            importlib.import_module(package.name)
    importlib.import_module("holdfast.interfaces.web.app").describe_api()  # prepares the routes
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        os.write(1, b"ready")
        os.close(1)
        os.open(os.devnull, os.O_WRONLY)
        _Calls(listening).answer_until_the_worker_ends()
    os.unlink(address)
    os.rmdir(os.path.dirname(address))


class _Calls:
    """The calls of one server, each a connection and the process of its command."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._running: dict[int, socket.socket] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def answer_until_the_worker_ends(self) -> None:
        """The worker holds the other end of the input."""
        while True:
            waiting = select.poll()
            for number in (0, self._listening.fileno(), self._woken):
                waiting.register(number, select.POLLIN)
            for connection in self._running.values():
                waiting.register(connection, 0)  # its end alone, which is always reported
            ready = {number for number, _ in waiting.poll()}
            if 0 in ready:
                self._kill(self._running)
                return
            if self._woken in ready:
                os.read(self._woken, 1 << 10)
                self._send_statuses()
            if self._listening.fileno() in ready:
                self._begin(self._listening.accept()[0])
            # A program that was killed takes its command with it.
            gone = [one for one, link in self._running.items() if link.fileno() in ready]
            self._kill(gone)

    def _begin(self, connection: socket.socket) -> None:
        _, files, _, _ = socket.recv_fds(connection, 1, 8)
        call = json.loads(_read_all(connection))
        process = os.fork()
        if process == 0:
            self._forget()
            connection.close()
            _become(call, files)
        for file in files:
            os.close(file)
        self._running[process] = connection
        with suppress(OSError):
            connection.sendall(b"%d\n" % process)

    def _kill(self, processes: Iterable[int]) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _forget(self) -> None:
        """In a command's process: other commands' connections end with their own process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._listening.close()
        os.close(self._woken)
        os.close(self._wake)
        for connection in self._running.values():
            connection.close()

    def _send_statuses(self) -> None:
        while self._running:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            with self._running.pop(process) as connection, suppress(OSError):
                connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))


def _become(call: Mapping[str, Any], files: Sequence[int]) -> NoReturn:
    status = 1
    try:
        for number, file in enumerate(files):
            if number < 3:
                os.dup2(file, number)
                os.close(file)
            else:
                os.set_inheritable(file, True)
        _open_streams()
        os.chdir(call["directory"])
        os.environ.clear()
        os.environ.update(call["variables"])
        for place in call["variables"].get("PYTHONPATH", "").split(os.pathsep):
            if place and os.path.exists(customised := os.path.join(place, "sitecustomize.py")):
                runpy.run_path(customised)
        sys.argv[1:] = call["arguments"]
        status = importlib.import_module("holdfast.__main__").run()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _open_streams() -> None:
    """Those of the server know what kind of files theirs were."""
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
