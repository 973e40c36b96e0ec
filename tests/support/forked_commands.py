"""Running commands and hooks in processes of their own, which are forked instead of started.

    a server imports Holdfast once → it forks for each call → that process forks again: the outer
    one waits for the command, and sends its status

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
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
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
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the outer processes
        number = listening.fileno()
        while 0 not in select.select([0, number], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(connection)
            connection.close()
    os.unlink(address)
    os.rmdir(os.path.dirname(address))


def _answer(connection: socket.socket) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, files, _, _ = socket.recv_fds(connection, 1, 8)
        call = json.loads(_read_all(connection))
        child = os.fork()
        if child == 0:
            connection.close()
            _become(call, files)
        for file in files:
            os.close(file)
        connection.sendall(b"%d\n" % child)
        threading.Thread(target=_end_with, args=(connection.fileno(), child), daemon=True).start()
        _, status = os.waitpid(child, 0)
        connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))
    finally:
        os._exit(0)


def _end_with(connection: int, child: int) -> None:
    """A program that was killed takes its command with it."""
    hangup = select.poll()
    hangup.register(connection, 0)
    hangup.poll()
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


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
