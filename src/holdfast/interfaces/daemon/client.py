"""The client of the daemon, which also starts it. It uses only the standard library, because hooks
must be fast.

    connect → ask
    no daemon → one client starts it, others wait for the same one → ask

Guarantees: it never talks to another user's process, and never waits longer than the given time.
Every failure becomes `NoDaemon`, and the caller continues without the daemon. Not guaranteed: that
a request which ended in `NoDaemon` was not carried out.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast import __version__
from holdfast.interfaces.daemon import hook_client
from holdfast.interfaces.daemon.address import (
    NoPlace,
    candidate_directories,
    require_private,
    socket_name,
)

if TYPE_CHECKING:
    from _socket import socket

ANSWER_S = 120.0
START_S = 10.0
_CONNECT_S = 1.0
_LOOK_AGAIN_S = 0.01
_LARGEST_LOG_BYTES = 1 << 20
_TRY_AGAIN_S = 60.0
_FIRST_TRY, _SECOND_TRY = b"?", b"!"
"""The start file contains this until the daemon overwrites it when it is ready."""
_started: list[int] = []


class NoDaemon(Exception):
    """No daemon can do it; the message says why."""


def ask(
    request: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    start: bool = False,
    answer_s: float = ANSWER_S,
    start_s: float = START_S,
    version: str = __version__,
) -> dict[str, Any]:
    """The daemon's answer; with `start`, a daemon is started if none is running."""
    environment = os.environ if environment is None else environment
    head = hook_client.request_head(request.encode(), environment, version)
    message = hook_client.pack(*head, json.dumps(dict(arguments or {})).encode())
    if len(message) > hook_client.LARGEST_BYTES:
        raise NoDaemon(f"a request of {len(message)} bytes is too large")
    word, data = _exchange(message, environment, answer_s, start_s if start else None)
    if data.startswith(hook_client.RETIRED) and start:
        # The daemon was an earlier version, and has exited to make room.
        word, data = _exchange(message, environment, answer_s, start_s)
    if word != hook_client.DONE:
        raise NoDaemon(data.removeprefix(hook_client.RETIRED).decode("utf-8", "replace"))
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise NoDaemon("an invalid answer")
    return answer


def ask_status(workspace: str, answer_s: float, **wanted: object) -> dict[str, Any]:
    """The daemon's status, with one workspace; empty without a daemon. `seen` identifies the
    caller's view of the directory. With it, the answer includes a scan if the daemon has one. With
    `times`, it includes how long the last saves took."""
    try:
        return ask("status", {"workspace": workspace, **wanted}, answer_s=answer_s)
    except NoDaemon:
        return {}


def workspace_in(status: Mapping[str, Any]) -> dict[str, Any]:
    """The workspace that `ask_status` named; empty if it is not watched."""
    found = status.get("workspaces")
    return dict(found[0]) if found else {}


def ask_about_watch(workspace: str, answer_s: float) -> dict[str, Any] | None:
    """The daemon's watch over a workspace; None without a daemon or watch."""
    return workspace_in(ask_status(workspace, answer_s)).get("watch")


def ask_about_saves(workspace: str, answer_s: float) -> list[int]:
    """How long the daemon's last saves of a workspace took, in nanoseconds."""
    return list(workspace_in(ask_status(workspace, answer_s, times=True)).get("save_times_ns", ()))


def ask_about_content(workspace: str, answer_s: float) -> dict[str, Any]:
    """The `watch`, and a current `scan` if the watch is trusted and the daemon is not turned off;
    empty without a daemon or watch."""
    seen = None
    if os.environ.get(hook_client.SWITCH) != "off":
        with contextlib.suppress(OSError):
            seen = hook_client.seen_from_here(workspace).decode()
    return workspace_in(ask_status(workspace, answer_s, seen=seen))


def _exchange(
    message: bytes, environment: Mapping[str, str], answer_s: float, start_s: float | None
) -> tuple[bytes, bytes]:
    connection = connect(environment)
    if connection is None and start_s is not None:
        connection = start_daemon(environment, start_s)
    if connection is None:
        raise NoDaemon("none is running")
    try:
        connection.sendall(message)
        word, data = hook_client.receive(connection, answer_s)
        if word == hook_client.ACCEPTED:  # older daemons treat every message as a hook call
            word, data = hook_client.receive(connection, answer_s)
    except (OSError, ValueError) as error:
        raise NoDaemon(f"it did not answer: {error}") from None
    finally:
        connection.close()
    return word, data


def connect(environment: Mapping[str, str]) -> socket | None:
    """A connection to this user's daemon, or None."""
    return hook_client.connect(environment, _CONNECT_S)


def start_daemon(environment: Mapping[str, str], wait_s: float) -> socket:
    """A connection to a daemon that is started, or just starting; raises `NoDaemon` if none is
    ready in time."""
    _start_directory(environment)  # raises the reason if there is none
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        begin_daemon(environment)
        if (connection := connect(environment)) is not None:
            return connection
        time.sleep(_LOOK_AGAIN_S)
    raise NoDaemon(f"not ready after {wait_s:g} s")


def begin_daemon(environment: Mapping[str, str]) -> None:
    """Start a daemon for the next client without waiting, unless another client is starting one. If
    it exits before it is ready, it is tried again at once, because it may have been killed. After
    two such tries there is a pause: a crashing daemon must not slow down every event.

    The new process inherits the lock. It releases the lock when it is ready or exits; until then,
    the file says that it is not ready.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        directory = _start_directory(environment)
        fd = os.open(os.path.join(directory, f"{socket_name(environment)}.starting"), flags, 0o600)
    except (OSError, NoDaemon):
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (connection := connect(environment)) is not None:
            connection.close()
            return
        age_s = time.time() - os.fstat(fd).st_mtime
        before, recent = os.pread(fd, 1, 0), 0 <= age_s < _TRY_AGAIN_S
        if before == _SECOND_TRY and recent:
            return
        os.pwrite(fd, _SECOND_TRY if before == _FIRST_TRY and recent else _FIRST_TRY, 0)
        _spawn(directory, environment, fd)
    except (OSError, NoDaemon):
        return
    finally:
        os.close(fd)


def _start_directory(environment: Mapping[str, str]) -> str:
    """The directory for the socket."""
    reasons = []
    for directory in candidate_directories(environment):
        try:
            require_private(directory)
        except (NoPlace, OSError) as error:
            reasons.append(str(error))
            continue
        return directory
    raise NoDaemon("; ".join(reasons))


def _spawn(directory: str, environment: Mapping[str, str], ready_fd: int) -> None:
    """Start the process, detached; it writes a byte to `ready_fd` when it is ready."""
    _reap()
    log = _log_file(directory)
    os.set_inheritable(ready_fd, True)
    # -P: do not import modules from the current directory.
    command = [sys.executable, "-P", "-m", "holdfast", "daemon", "--detached", str(ready_fd)]
    opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    try:
        pid = os.posix_spawn(
            sys.executable,
            command,
            dict(environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, log, opened, 0o600),
            ],
            setsid=True,
        )
    except (OSError, NotImplementedError) as error:
        raise NoDaemon(f"cannot start it: {error}") from None
    _started.append(pid)


def _log_file(directory: str) -> str:
    """The daemon's error log; a long one is renamed first, and kept."""
    path = os.path.join(directory, "daemon.log")
    with contextlib.suppress(OSError):
        if os.lstat(path).st_size > _LARGEST_LOG_BYTES:
            os.replace(path, path + ".1")
    return path


def _reap() -> None:
    """Reap exited processes that were started here."""
    for pid in list(_started):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _started.remove(pid)
