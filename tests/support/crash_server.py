"""Runs operations in processes that are killed at one exact call, or at one instant.

    python -m tests.support.crash_server     a JSON request per line in, a JSON answer per line out

The server is single-threaded and forks for each request, so a thousand crashes cost seconds. Death
is SIGKILL at the n-th call of the file system port, or SIGALRM with its default action after a
time, which can hit anywhere, SQLite's own calls included. Nothing of the dying process runs after
it. Before it dies, somebody else may write a file of the workspace at another call.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType

from holdfast.engine.bundles.importing import ImportRequest
from holdfast.engine.purge.planning import PurgeRequest
from tests.support.composition import composed
from tests.support.watched_filesystem import Call, WatchedFilesystem

ROOT = Path(__file__).resolve().parents[2]
BY_SOMEBODY_ELSE = b"by somebody else, while the restore ran"


@dataclass(frozen=True, slots=True)
class Request:
    """`action` is a method of `Composed`, or `recover`; `at` counts calls from 1, and `write_at`
    is the call before which somebody else writes the file `write`."""

    workspace: str
    action: str
    argument: str | None = None
    paths: tuple[str, ...] = ()
    hunks: tuple[int, ...] = ()
    at: int | None = None
    after_s: float | None = None
    write_at: int | None = None
    write: str = ""
    home: str = field(default_factory=lambda: os.environ["HOLDFAST_HOME"])


@dataclass(frozen=True, slots=True)
class Answer:
    """`made` is what was acknowledged before death, if anything was; `wrote` whether somebody
    else's file was written."""

    died: bool
    made: str | None
    error: str | None
    calls: int
    wrote: bool = False


class CrashServer:
    """The test's side: ask, get an answer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.crash_server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: Request) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(request)), file=self._process.stdin, flush=True)
        return Answer(**json.loads(self._process.stdout.readline()))

    def __enter__(self) -> CrashServer:
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
        fields = json.loads(line)
        fields["paths"] = tuple(fields["paths"])
        fields["hunks"] = tuple(fields["hunks"])
        print(json.dumps(asdict(_fork(Request(**fields)))), flush=True)


def _fork(request: Request) -> Answer:
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_fd)
        status = 1
        try:
            _run(request, write_fd)
            status = 0
        finally:
            os._exit(status)
    os.close(write_fd)
    with os.fdopen(read_fd, "rb") as pipe:
        said = dict(json.loads(line) for line in pipe.read().splitlines())
    _, status = os.waitpid(child, 0)
    return Answer(
        died=os.WIFSIGNALED(status),
        made=said.get("made"),
        error=said.get("error"),
        calls=said.get("calls", 0),
        wrote=said.get("wrote", False),
    )


def _run(request: Request, pipe: int) -> None:
    def say(key: str, value: object) -> None:
        os.write(pipe, json.dumps([key, value]).encode() + b"\n")

    def kill(call: Call) -> None:
        file = Path(request.workspace) / request.write
        if call.number == request.write_at and file.parent.is_dir():
            file.write_bytes(BY_SOMEBODY_ELSE)
            say("wrote", True)
        if call.number == request.at:
            os.kill(os.getpid(), signal.SIGKILL)

    os.environ["HOLDFAST_HOME"] = request.home
    fs = WatchedFilesystem(before=kill)
    if request.after_s is not None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, request.after_s)
    try:
        with composed(Path(request.workspace), fs=fs.as_port()) as opened:
            if request.action == "save":
                say("made", opened.save().id)
            elif request.action == "restore":
                paths = [os.fsencode(path) for path in request.paths]
                say("made", opened.restore(request.argument, *paths, hunks=request.hunks).record)
            elif request.action == "undo":
                say("made", opened.undo().record)
            elif request.action == "import":
                wanted = ImportRequest(Path(request.argument or ""), foreign=True)
                say("made", opened.engine.import_bundle(wanted).latest)
            elif request.action == "purge":
                gone = tuple(os.fsencode(path) for path in request.paths)
                outcome = opened.engine.purge(PurgeRequest(gone))
                say("made", None if outcome.proof.traces else "proven")
            else:
                opened.engine.recover()
    except Exception as error:
        say("error", f"{type(error).__name__}: {error}")
    say("calls", fs.calls)


if __name__ == "__main__":
    _serve()
