"""The requests that the daemon answers, by name, and how they and their answers are written.

    protocol, version, variables that have to be the same, name, arguments → a word, its data

The arguments of a hook are fields, those of other requests one JSON object; so are the answers. A
handler gets the daemon and the arguments of the request, and returns the answer. An error of the
error family is passed on to the client as it is. Any other makes the client do the work itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast import __version__
from holdfast.api.views.checkpoints import daemon_save_view
from holdfast.api.views.health import watch_view
from holdfast.domain.checkpoints import Kind, Position
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import session_id
from holdfast.domain.intent import DEFAULT_CONFIDENCE, make_intent
from holdfast.interfaces.daemon import hook_client
from holdfast.interfaces.daemon.hook_events import answer_hook, unpack_variables

if TYPE_CHECKING:
    from holdfast.api.automation import WatchedWorkspace
    from holdfast.interfaces.daemon.server import Daemon

Handler: TypeAlias = "Callable[[Daemon, Arguments], dict[str, Any]]"


def read_request(fields: list[bytes]) -> dict[str, Any]:
    """A request by the names of its parts; `ValueError` for one that makes no sense."""
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
    """With `settle` in the answer to a hook, the hook has to confirm the delivery."""
    result = answer.get("answer")
    if isinstance(result, dict):
        if "settle" not in result:
            return hook_client.pack(hook_client.DONE, json.dumps(result).encode())
        word = hook_client.DONE if result["settle"] is None else hook_client.DELIVER
        return hook_client.pack(word, str(result["text"]).encode())
    if "error" in answer:
        return hook_client.pack(hook_client.FAILED, json.dumps(answer["error"]).encode())
    reason = str(answer["refused"]).encode("utf-8", "replace")
    retired = hook_client.RETIRED if answer.get("retired") else b""
    return hook_client.pack(hook_client.NOT_DONE, retired + reason)


def receive_confirmation(connection: socket.socket) -> bool:
    """Whether the hook says that the agent has the text; otherwise it ends without a word."""
    expected, said = hook_client.pack(hook_client.DELIVERED, b""), b""
    with contextlib.suppress(OSError):
        while len(said) < len(expected) and (part := connection.recv(len(expected) - len(said))):
            said += part
    return said == expected


class Arguments:
    """The arguments of one request, with what they have to be."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise UsageError(f"missing argument {name!r}")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"the argument {name!r} is not a string")
        return value

    def optional_number(self, name: str) -> int | None:
        value = self._given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise UsageError(f"the argument {name!r} is not a whole number")
        return value

    def list_of(self, name: str) -> list[Any]:
        value = self._given.get(name, [])
        if not isinstance(value, list):
            raise UsageError(f"the argument {name!r} is not a list")
        return value

    def get(self, name: str, default: Any) -> Any:
        return self._given.get(name, default)

    def directory(self, name: str) -> str:
        """A full path: the daemon runs in another directory than its client."""
        value = self.text(name)
        if not os.path.isabs(value) or "\0" in value:
            raise UsageError(f"the argument {name!r} is not an absolute path")
        return value


def ping(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    return {"pid": os.getpid(), "version": __version__}


def status(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    """Of one workspace if it is named, else of all that are open. Opens none."""
    wanted = arguments.optional_text("workspace")
    key = None if wanted is None else os.path.realpath(wanted)
    return {
        "pid": os.getpid(),
        "version": __version__,
        "uptime_s": daemon.uptime_s(),
        "idle_limit_s": daemon.idle_s,
        "connections": daemon.connections,
        "requests": daemon.requests,
        "wakeups": daemon.wakeups + daemon.workspaces.wakeups,
        "workspaces": [
            described(workspace)
            for workspace in daemon.workspaces.all()
            if key is None or str(workspace.workspace) == key
        ],
    }


def described(workspace: WatchedWorkspace) -> dict[str, Any]:
    return {
        "workspace": str(workspace.workspace),
        "session_id": workspace.session,
        "watch": watch_view(workspace.status()),
    }


def checkpoint(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    """Save a workspace; answered when the checkpoint is durable."""
    path = arguments.directory("workspace")
    session = session_id(arguments.text("session"))
    intent = make_intent(
        arguments.text("reasoning"),
        goal_id=arguments.optional_text("goal_id"),
        task_id=arguments.optional_text("task_id"),
        tool_calls=arguments.list_of("tool_calls"),
        confidence=arguments.get("confidence", DEFAULT_CONFIDENCE),
        name=arguments.optional_text("name"),
        tags=arguments.list_of("tags"),
    )
    kind = _kind(arguments.get("kind", Kind.MANUAL.value))
    position = Position(
        arguments.optional_number("message_index"), arguments.optional_text("tool_use_id")
    )
    reuse = arguments.get("reuse", False) is True

    def save(workspace: WatchedWorkspace) -> dict[str, Any]:
        workspace.session = session
        outcome = workspace.save(session, intent, kind=kind, position=position, reuse=reuse)
        return {**daemon_save_view(outcome), "watch": watch_view(workspace.status())}

    return daemon.workspaces.work_in(path, save)


def watch(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    """Keep a workspace open and watched, with automatic checkpoints into this session."""
    session = session_id(arguments.text("session"))

    def begin(workspace: WatchedWorkspace) -> dict[str, Any]:
        workspace.attach(session)
        return described(workspace)

    return daemon.workspaces.work_in(arguments.directory("workspace"), begin)


def release(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    """Close a workspace; the next request opens it again."""
    daemon.workspaces.discard(arguments.directory("workspace"))
    return {}


def stop(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    daemon.end()
    return {"pid": os.getpid()}


def _kind(name: object) -> Kind:
    try:
        kind = Kind(str(name))
    except ValueError:
        raise UsageError(f"unknown kind of checkpoint: {name!r}") from None
    if kind.is_record:
        raise UsageError(
            f"a checkpoint of kind {kind.value} is made by a restore and cannot be requested"
        )
    return kind


HANDLERS: dict[str, Handler] = {
    "ping": ping,
    "status": status,
    "checkpoint": checkpoint,
    "watch": watch,
    "release": release,
    "stop": stop,
    "hook": answer_hook,
}
