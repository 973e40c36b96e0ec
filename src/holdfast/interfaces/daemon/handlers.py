"""The requests that the daemon answers, by name.

A handler gets the daemon and the arguments of the request, and returns the answer. An error of the
error family is passed on to the client as it is. Any other makes the client do the work itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast import __version__
from holdfast.api.views.checkpoints import daemon_save_view
from holdfast.api.views.health import watch_view
from holdfast.domain.checkpoints import Kind, Position
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import session_id
from holdfast.domain.intent import DEFAULT_CONFIDENCE, make_intent
from holdfast.interfaces.daemon.hook_events import answer_hook

if TYPE_CHECKING:
    from holdfast.api.automation import WatchedWorkspace
    from holdfast.interfaces.daemon.server import Daemon

Handler: TypeAlias = "Callable[[Daemon, Arguments], dict[str, Any]]"


class Arguments:
    """The arguments of one request, with what they have to be."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise UsageError(f"the argument {name!r} is missing")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"the argument {name!r} is not a text")
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
        """A full path: the daemon stands in another directory than who asks."""
        value = self.text(name)
        if not os.path.isabs(value) or "\0" in value:
            raise UsageError(f"the argument {name!r} is not a full path")
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
        raise UsageError(f"there is no kind of checkpoint {name!r}") from None
    if kind.is_record:
        raise UsageError(f"{kind.value} is what restores leave behind, nothing to ask for")
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
