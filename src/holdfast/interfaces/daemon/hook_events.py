"""Events of agents, handled in the daemon as the hook's own process would have handled them.

    the fields of the message → the same directory and root? → event → handled in the open workspace
    an event after the fact → answered first, handled then

Guarantees: the environment of the hook's process is what components see; what is answered is what
that process would have said. Whatever cannot be done here in the same way is refused, and the hook
does it: another mount namespace, plug-ins (which may ask for their own environment), a workspace
whose settings turn the daemon off, anything unexpected.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from holdfast.bootstrap.components import BUILT_IN
from holdfast.domain.errors import Busy, HoldfastError, NoSpace
from holdfast.interfaces.daemon import packed
from holdfast.interfaces.daemon.client import peer_process
from holdfast.interfaces.daemon.hook_client import seen_from_here

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.app.automation.watched_workspace import WatchedWorkspace
    from holdfast.domain.agent_events import AgentEvent, Reply
    from holdfast.interfaces.daemon.handlers import Arguments
    from holdfast.interfaces.daemon.server import Daemon

_ANSWER_TAKEN_S = 10.0
_LONGEST_TOOL_NS = 600 * 1_000_000_000


class NotHere(Exception):
    """The hook's own process has to do it, for the reason given."""


class _Asked(NamedTuple):
    """One call of a hook, as its process sent it."""

    words: list[str]
    directory: str
    seen: bytes
    began_ns: int
    environment: Mapping[str, str]
    payload: bytes


Message: TypeAlias = dict[str, Any]


def answer_packed(
    connection: socket.socket, message: Message, answer_to: Callable[[Message], Message]
) -> None:
    """Say at once that somebody is there, then what came of it."""
    connection.settimeout(_ANSWER_TAKEN_S)
    connection.sendall(packed.pack(packed.ACCEPTED, b""))
    arguments = message.get("arguments")
    if isinstance(arguments, dict):
        message = message | {"arguments": arguments | {"process": peer_process(connection)}}
    answer = answer_to(message)
    result = answer.get("answer")
    settle = result.get("settle") if isinstance(result, dict) else None
    told = False
    try:
        connection.settimeout(_ANSWER_TAKEN_S)
        connection.sendall(_as_fields(answer))
        if settle is not None:
            told = _is_told(connection)
    finally:
        if settle is not None:
            settle(told)


def _is_told(connection: socket.socket) -> bool:
    """Whether the hook says that the agent has the text: it ends without a word otherwise."""
    expected, said = packed.pack(packed.TOLD, b""), b""
    with contextlib.suppress(OSError):
        while len(said) < len(expected) and (part := connection.recv(len(expected) - len(said))):
            said += part
    return said == expected


def _as_fields(answer: Mapping[str, Any]) -> bytes:
    result = answer.get("answer")
    if isinstance(result, dict):
        word = packed.DONE if result.get("settle") is None else packed.TELL
        return packed.pack(word, str(result["text"]).encode())
    reason = str(answer.get("refused") or answer.get("error"))
    if answer.get("retired"):
        reason = f"retired: {reason}"
    return packed.pack(packed.NOT_DONE, reason.encode("utf-8", "replace"))


def answer_hook(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
    """`NotHere`, or anything else unexpected, when the hook has to do it."""
    from holdfast.domain.agent_events import Reply
    from holdfast.interfaces.hooks.calls import UnknownAgent, event_of, read_call
    from holdfast.interfaces.hooks.payloads import Unreadable, parse_payload
    from holdfast.interfaces.hooks.problems import note_problem
    from holdfast.interfaces.hooks.protection_notices import of_failure

    asked = _asked(arguments.list_of("fields"))
    if not _same_place(asked):
        raise NotHere("it sees other directories under the same names")
    try:
        payload = parse_payload(asked.payload)
        call = read_call(asked.words)
        event, dialect = event_of(call, payload, asked.environment, asked.began_ns)
        event = event._replace(process=arguments.optional_number("process") or 0)
    except (Unreadable, UnknownAgent) as error:
        raise NotHere(str(error)) from None
    try:
        if not event.is_known:
            return {"text": dialect.render(event, Reply())}
        known = _Event(daemon, asked, event)
        reply = known.handled()
        return {"text": dialect.render(event, reply), "settle": _settling(event, reply, known.path)}
    except (Busy, NoSpace) as error:  # it would be the same for the hook
        note_problem(event.agent, event, error)
        reply = of_failure(event, error)
        return {"text": dialect.render(event, reply), "settle": _settling(event, reply)}
    except HoldfastError as error:  # the hook may have the key, or another view of the store
        raise NotHere(f"it could not be saved here: {error.message}") from None


def _settling(
    event: AgentEvent, reply: Reply, path: Path | None = None
) -> Callable[[bool], None] | None:
    """To be called when the hook has said whether the agent was told."""
    claim, notices = reply.claim, reply.notices
    if claim is None and not notices:
        return None

    def settled(told: bool) -> None:
        from holdfast.interfaces.hooks.protection_notices import settle
        from holdfast.interfaces.hooks.telling import settle_in

        if claim is not None and path is not None:
            settle_in(event, path, claim, told=told)
        if notices and told:
            settle(event, notices)

    return settled


def _asked(fields: list[Any]) -> _Asked:
    words, directory, seen, began_ns, variables, payload = fields
    return _Asked(
        [os.fsdecode(word) for word in words.split(b"\0") if word],
        os.fsdecode(directory),
        seen,
        int(began_ns),
        {os.fsdecode(k): os.fsdecode(v) for k, v in packed.unpack_variables(variables).items()},
        payload,
    )


def _same_place(asked: _Asked) -> bool:
    try:
        return seen_from_here(asked.directory) == asked.seen
    except OSError:
        return False


class _Event:
    """One event that is known, and the workspace that it is about."""

    def __init__(self, daemon: Daemon, asked: _Asked, event: AgentEvent) -> None:
        from holdfast.bootstrap.event_workspace import workspace_of

        self._daemon = daemon
        self._asked = asked
        self._event = event
        self.path: Path = workspace_of(event, asked.directory)
        self._news: tuple[str, ...] = ()

    def handled(self) -> Reply:
        from holdfast.bootstrap.stores import store_of
        from holdfast.domain.agent_events import Reply
        from holdfast.interfaces.hooks.handling import BEGINS
        from holdfast.interfaces.hooks.protection_notices import fresh

        if store_of(self.path) is None:
            if self._event.kind not in BEGINS:  # nothing to compare with
                return fresh(self._event, Reply(), saved=False)
            self._make_store()
        if self._event.must_wait:
            return self._work()
        told = self._answer_to_fact()
        self._daemon.go_on(self._work_alone)
        return told

    def _make_store(self) -> None:
        """Also in place of one that is lost; what there is to say of that, this event hears."""
        from holdfast.bootstrap.workspace import open_workspace

        with open_workspace(
            self.path,
            create=True,
            protect=True,
            spare_repositories=True,
            purpose="holdfast daemon",
        ) as opened:
            self._news = opened.news

    def _answer_to_fact(self) -> Reply:
        """What is to be told, unless that would take waiting for somebody; `NotHere` unless the
        workspace is open, and may be worked on here, as far as can be told without waiting."""
        from holdfast.domain.agent_events import Reply
        from holdfast.interfaces.hooks.handling import is_checked, notices_in

        workspaces = self._daemon.workspaces
        known = next((w for w in workspaces.all() if w.workspace == self.path), None)
        if known is None:
            raise NotHere("the workspace is not open here")
        require_allowed(known)
        if is_checked(known.opened, self._event):
            raise NotHere("a check has to run, beside the agent")
        if self._event.carries:
            with workspaces.if_free(known) as free:
                if free:
                    return notices_in(known.opened, self._event)
        return Reply()

    def _work(self) -> Reply:
        from holdfast.interfaces.daemon.handlers import with_workspace

        try:
            return with_workspace(self._daemon, str(self.path), self._in)
        except NotHere:
            self._daemon.workspaces.discard(str(self.path))
            raise

    def _in(self, workspace: WatchedWorkspace) -> Reply:
        from holdfast.interfaces.hooks.handling import handle_in

        require_allowed(workspace)
        with workspace.worked_on(self._asked.environment) as opened:
            opened.news, self._news = (*opened.news, *self._news), ()
            reply = handle_in(opened, self._event)
        self._remember(workspace)
        return reply

    def _work_alone(self) -> None:
        from holdfast.interfaces.hooks.problems import note_problem

        try:
            self._work()
        except Exception as error:
            note_problem(self._event.agent, self._event, error)

    def _remember(self, workspace: WatchedWorkspace) -> None:
        """Whose work it is that the watch sees from now on, and whether a tool is doing it."""
        from holdfast.app.automation.agent_sessions import find_session
        from holdfast.domain.agent_events import EventKind
        from holdfast.interfaces.hooks.handling import BEGINS

        kind = self._event.kind
        runs = kind is EventKind.BEFORE_TOOL
        workspace.tool_runs(until_ns=time.monotonic_ns() + _LONGEST_TOOL_NS if runs else 0)
        session = find_session(workspace.opened, self._event)
        if session is not None and kind in BEGINS:
            workspace.session = session.id
            self._daemon.agents.seen(workspace.workspace, session.id, self._event.process)
        elif kind is EventKind.SESSION_END and session and session.id == workspace.session:
            workspace.session = None  # else another agent is still at work here


def require_allowed(workspace: WatchedWorkspace) -> None:
    settings = workspace.opened.engine.vault.settings
    if settings.daemon == "off":
        raise NotHere("the settings turn it off")
    foreign = [name for name in settings.components if name not in BUILT_IN]
    if foreign:
        raise NotHere(f"{foreign[0]} is a plug-in, which may need the environment of the hook")
