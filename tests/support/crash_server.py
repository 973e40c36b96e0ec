"""Runs operations in processes that are killed at one exact call, or at one instant.

    python -m tests.support.crash_server     a JSON request per line in, a JSON answer per line out

Death is SIGKILL at the n-th call of the file system port, or SIGALRM with its default action after
a time, which can hit anywhere, SQLite's own calls included. Nothing of the dying process runs after
it. Before it dies, another program may write a file of the workspace at another call.
"""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, dataclass, field
from pathlib import Path

from holdfast.engine.bundles.importer import ImportRequest, import_bundle
from holdfast.engine.purge.plan import PurgeRequest
from holdfast.engine.purge.purge import purge
from tests.support.composition import composed
from tests.support.forking_server import ForkingServer, Said, Say, serve
from tests.support.watched_filesystem import Call, WatchedFilesystem

BY_SOMEBODY_ELSE = b"by somebody else, while the restore ran"


@dataclass(frozen=True, slots=True)
class Request:
    """`action` is a method of `Composed`, or `recover`; `at` counts calls from 1, and `write_at` is
    the call before which another program writes the file `write`."""

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
    """`made` is what was acknowledged before death, if anything was; `wrote` whether that file was
    written."""

    died: bool
    made: str | None = None
    error: str | None = None
    calls: int = 0
    wrote: bool = False


class CrashServer(ForkingServer[Answer]):
    def __init__(self) -> None:
        super().__init__("tests.support.crash_server", Answer)

    def ask(self, request: Request) -> Answer:
        return self.asked(asdict(request))


def _run(fields: Said, say: Say) -> None:
    lists = {name: tuple(fields[name]) for name in ("paths", "hunks")}
    request = Request(**(fields | lists))

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
                say("made", import_bundle(opened.engine.vault, wanted).latest)
            elif request.action == "purge":
                gone = tuple(os.fsencode(path) for path in request.paths)
                outcome = purge(opened.engine, PurgeRequest(gone))
                say("made", None if outcome.proof.traces else "proven")
            else:
                opened.engine.recover()
    except Exception as error:
        say("error", f"{type(error).__name__}: {error}")
    say("calls", fs.calls)


if __name__ == "__main__":
    serve(_run)
