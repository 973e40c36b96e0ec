"""Handles agent events in the daemon, with the same result as in the hook's own process.

    message fields → same directory and root? → event → handled in the open workspace → answer

Guarantees: components see the environment of the hook's process, and the answer is the same as from
that process. The daemon refuses work that it cannot do in the same way, and the hook does it:
another mount namespace, plug-ins (which may need the hook's environment), a workspace whose
settings turn the daemon off, the user's own checks, and anything unexpected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from holdfast.api.automation import is_checked, needs_hook_process
from holdfast.domain.agent_events import AgentEvent, Reply
from holdfast.domain.errors import Busy, HoldfastError, NoSpace
from holdfast.interfaces.daemon.hook_client import seen_from_here
from holdfast.interfaces.hooks.payloads import Unreadable, parse_payload
from holdfast.interfaces.hooks.translation import UnknownAgent, event_of, read_call
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.api.automation import OpenWorkspace, WatchedWorkspace
    from holdfast.interfaces.daemon.handlers import Arguments
    from holdfast.interfaces.daemon.server import Daemon


class WorkForHook(Exception):
    """The hook's own process has to do it; the message says why."""


class _HookCall(NamedTuple):
    """One hook call, as the hook's process sent it."""

    words: list[str]
    directory: str
    seen: bytes
    began_ns: int
    environment: Mapping[str, str]
    payload: bytes


def answer_hook(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    """Raises `WorkForHook`, or another error, if the hook has to do it. Call `settle` in the answer
    with whether the agent got the text; None if that does not matter."""
    asked = _parse_call(arguments["fields"])
    if not _same_place(asked):
        raise WorkForHook("it sees different directories at the same paths")
    try:
        payload = parse_payload(asked.payload)
        call = read_call(asked.words)
        event, agent = event_of(call, payload, asked.environment, asked.began_ns)
        event = event._replace(process=arguments["process"])
    except (Unreadable, UnknownAgent) as error:
        raise WorkForHook(str(error)) from None
    if not event.is_known:
        return {"text": agent.render(event, Reply()), "settle": None}
    automation, workspace = daemon.automation, OpenEventWorkspace(daemon, asked, event)
    try:
        reply = automation.handle_event(event, workspace)
    except (Busy, NoSpace) as error:  # the hook would fail in the same way
        reply = automation.failed(event, error)
    except HoldfastError as error:  # the hook may have the key, or another view of the store
        raise WorkForHook(f"it could not be saved here: {error.message}") from None

    def settle(delivered: bool) -> None:
        automation.settle(event, workspace, reply, delivered=delivered)

    matters = reply.claim is not None or reply.notices
    return {"text": agent.render(event, reply), "settle": settle if matters else None}


def _parse_call(fields: list[Any]) -> _HookCall:
    words, directory, seen, began_ns, variables, payload = fields
    return _HookCall(
        [os.fsdecode(word) for word in words.split(b"\0") if word],
        os.fsdecode(directory),
        seen,
        int(began_ns),
        unpack_variables(variables),
        payload,
    )


def unpack_variables(data: bytes) -> dict[str, str]:
    """Environment variables, as `hook_client.pack_variables` writes them."""
    pairs = [os.fsdecode(entry).partition("=") for entry in data.split(b"\0") if entry]
    return {name: value for name, _, value in pairs}


def _same_place(asked: _HookCall) -> bool:
    try:
        return seen_from_here(asked.directory) == asked.seen
    except OSError:
        return False


class OpenEventWorkspace:
    """The workspace of one event, kept open by the daemon; see
    `holdfast.api.automation.EventWorkspace`."""

    def __init__(self, daemon: Daemon, asked: _HookCall, event: AgentEvent) -> None:
        self._daemon = daemon
        self._call = asked
        self._event = event
        self._news: tuple[str, ...] = ()

    @cached_property
    def path(self) -> Path:
        return self._daemon.automation.host.workspace_of(self._event, self._call.directory)

    def use(self, event: AgentEvent, work: Callable[[OpenWorkspace], Reply]) -> Reply | None:
        host = self._daemon.automation.host
        if not host.has_store(self.path):
            if not event.begins:
                return None
            # Even in place of a missing store; the answer to this event reports that.
            with host.open_workspace(self.path, create=True, purpose="holdfast daemon") as created:
                self._news = created.news
        workspaces = self._daemon.workspaces

        def in_workspace(workspace: WatchedWorkspace) -> Reply:
            if (reason := needs_hook_process(workspace)) is not None:
                workspaces.discard(str(self.path))
                raise WorkForHook(reason)
            if is_checked(workspace.opened, event):
                raise WorkForHook("a check must run next to the agent")
            with workspace.use_for_event(self._call.environment) as opened:
                opened.news, self._news = (*opened.news, *self._news), ()
                reply = work(opened)
            session = workspace.note_event(event)
            if session is not None:
                self._daemon.automation.agents.note_process(
                    workspace.workspace, session, event.process
                )
            return reply

        return workspaces.work_in(str(self.path), in_workspace)
