"""The requests that the daemon answers, by name, and their encoding.

    protocol, version, variables that must match, name, arguments → a word, its data

Hook arguments are fields; other requests have one JSON object, and so have the answers. A handler
gets the daemon and the arguments, and returns the answer. After an error, the client does the work
itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast import __version__
from holdfast.api.views.health import watch_view
from holdfast.api.views.scans import ScanView, scan_view
from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.daemon import hook_client
from holdfast.interfaces.daemon.hook_events import answer_hook, unpack_variables

if TYPE_CHECKING:
    from holdfast.api.automation import WatchedWorkspace
    from holdfast.interfaces.daemon.server import Daemon

Arguments: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = "Callable[[Daemon, Arguments], dict[str, Any]]"


def read_request(fields: list[bytes]) -> dict[str, Any]:
    """A request with its parts by name; raises `ValueError` if it is invalid."""
    protocol, version, variables, request, *arguments = fields
    try:
        given = (
            json.loads(arguments[0]) if request != hook_client.REQUEST else {"fields": arguments}
        )
    except (IndexError, RecursionError):
        raise ValueError("an invalid request") from None
    return {
        "protocol": protocol,
        "version": version.decode(),
        "surroundings": unpack_variables(variables),
        "request": request.decode(),
        "arguments": given,
    }


def pack_answer(answer: Mapping[str, Any]) -> bytes:
    """If a hook's answer has `settle`, the hook must confirm delivery."""
    result = answer.get("answer")
    if isinstance(result, dict):
        if "settle" not in result:
            return hook_client.pack(hook_client.DONE, json.dumps(result).encode())
        word = hook_client.DONE if result["settle"] is None else hook_client.DELIVER
        return hook_client.pack(word, str(result["text"]).encode())
    reason = str(answer["refused"]).encode("utf-8", "replace")
    retired = hook_client.RETIRED if answer.get("retired") else b""
    return hook_client.pack(hook_client.NOT_DONE, retired + reason)


def receive_confirmation(connection: socket.socket) -> bool:
    """Whether the hook confirms that the agent has the text; otherwise it just disconnects."""
    expected, said = hook_client.pack(hook_client.DELIVERED, b""), b""
    with contextlib.suppress(OSError):
        while len(said) < len(expected) and (part := connection.recv(len(expected) - len(said))):
            said += part
    return said == expected


def ping(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    return {"pid": os.getpid(), "version": __version__}


def status(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    """The status of one workspace if it is named, else of all open ones. Opens none. With the
    client's view of the directory (`seen`), adds a current scan if the watch is trusted; with
    `times`, how long the last saves took."""
    wanted = arguments.get("workspace")
    key = None if wanted is None else os.path.realpath(str(wanted))
    return {
        "pid": os.getpid(),
        "version": __version__,
        "uptime_s": daemon.uptime_s(),
        "cpu_s": time.process_time(),
        "idle_limit_s": daemon.idle_s,
        "connections": daemon.connections,
        "requests": daemon.requests,
        "wakeups": daemon.wakeups + daemon.workspaces.wakeups,
        "workspaces": [
            _workspace_status(daemon, workspace, arguments)
            for workspace in daemon.workspaces.all()
            if key is None or str(workspace.workspace) == key
        ],
    }


def _workspace_status(
    daemon: Daemon, workspace: WatchedWorkspace, arguments: Arguments
) -> dict[str, Any]:
    seen = arguments.get("seen")
    scan = None if seen is None else _scan(daemon, workspace, seen)
    return {
        "workspace": str(workspace.workspace),
        "session_id": workspace.session,
        "watch": watch_view(workspace.status()),
        **({} if scan is None else {"scan": scan}),
        **({"save_times_ns": workspace.save_times_ns} if arguments.get("times") else {}),
    }


def _scan(daemon: Daemon, workspace: WatchedWorkspace, seen: str) -> ScanView | None:
    """None if the client has to scan: the watch is in doubt, the workspace is in use, or the client
    may see another directory at this path."""
    with daemon.workspaces.if_free(workspace) as free, contextlib.suppress(HoldfastError, OSError):
        here = hook_client.seen_from_here(str(workspace.workspace))
        if free and here == seen.encode() and workspace.is_current():
            found = workspace.look()
            return None if found is None else scan_view(found)
    return None


def stop(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    daemon.end()
    return {"pid": os.getpid()}


HANDLERS: dict[str, Handler] = {
    "ping": ping,
    "status": status,
    "stop": stop,
    "hook": answer_hook,
}
