"""A runtime directory of the test's own, and daemons in it: as processes, or in this one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.api.automation import open_watcher
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import SessionId
from holdfast.interfaces.daemon.client import NoDaemon, ask
from holdfast.interfaces.daemon.handlers import Handler
from holdfast.interfaces.daemon.hook_client import ask_about
from holdfast.interfaces.daemon.instance import listen
from holdfast.interfaces.daemon.server import Daemon

_LATE_DAEMONS = 100


@contextmanager
def runtime_directory() -> Iterator[Path]:
    """Short enough for a socket, wherever the tests run, and without a daemon afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(directory)
    try:
        yield directory
    finally:
        end_daemon()
        _remove_with_late_daemons(directory)
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


def _remove_with_late_daemons(directory: Path) -> None:
    """One that a hook has just started may come up only now, and make its socket meanwhile."""
    for _ in range(_LATE_DAEMONS):
        with contextlib.suppress(OSError):
            shutil.rmtree(directory)
            return
        threading.Event().wait(0.1)
        end_daemon()
    shutil.rmtree(directory)


def end_daemon() -> None:
    """End the one that is running, if there is one, and wait until it has."""
    with contextlib.suppress(NoDaemon):
        pid = ask("stop", answer_s=10)["pid"]
        if pid != os.getpid():
            wait_for(pid)


def kill_daemon(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for(pid)


def wait_for(pid: int) -> None:
    """Our own child is waited for; what was started by another process is polled."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        if not hasattr(os, "pidfd_open"):
            until = time.monotonic() + 30
            while _exists(pid) and time.monotonic() < until:
                time.sleep(0.005)
        elif _exists(pid):
            fd = os.pidfd_open(pid)
            select.select([fd], [], [], 30)
            os.close(fd)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def daemon_here(
    *,
    idle_s: float = 0,
    version: str | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> Iterator[Daemon]:
    """A daemon in a thread of this process."""
    options = {} if version is None else {"version": version}
    daemon = Daemon(
        listen(os.environ), open_watcher(), os.environ, idle_s=idle_s, handlers=handlers, **options
    )
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        yield daemon
    finally:
        daemon.end()
        thread.join()


def save_by_daemon(workspace: Path, prompt: str | None = None) -> Checkpoint:
    """The checkpoint that the daemon makes for a message in the session `s`. `NoAnswer` if it
    leaves that to the hook."""
    event = {
        "session_id": "s",
        "cwd": str(workspace),
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt or f"message {uuid.uuid4()}",
    }
    ask_about(["claude-code"], json.dumps(event).encode(), time.time_ns(), lambda text: True)
    with open_workspace(workspace, create=False) as opened:
        newest = opened.engine.vault.catalog.newest_of(SessionId("s"), (Kind.MESSAGE,))
        assert newest is not None
        return newest
