"""Turns a hook's command line and an agent's JSON into an `AgentEvent`, for all agents.

    find the sending agent → its module flattens the payload → each field is read by all its names

Guarantees: unknown, missing and wrongly typed fields are ignored. Event names are compared without
case and separators, so that small schema changes do no harm.
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.agents import AGENTS, agent_named, sender
from holdfast.interfaces.agents.agent import Agent
from holdfast.interfaces.hooks.payloads import (
    command_of,
    object_of,
    paths_of,
    text_of,
    texts_of,
    tool_kind,
)
from holdfast.values.classes import NamedTuple

_WITH_VALUE = ("-C", "--session")
_SEPARATORS = re.compile(r"[\W_]+")
_MOST_FAILURE = 500
_MOST_COMMAND = 1 << 20
_MOST_ID = 200

COMMON_EVENTS: Mapping[str, EventKind] = {
    "sessionstart": EventKind.SESSION_START,
    "userpromptsubmit": EventKind.MESSAGE,
    "pretooluse": EventKind.BEFORE_TOOL,
    "posttooluse": EventKind.AFTER_TOOL,
    "posttoolusefailure": EventKind.AFTER_TOOL,
    "precompact": EventKind.COMPACT,
    "stop": EventKind.TURN_END,
    "sessionend": EventKind.SESSION_END,
}


class UnknownAgent(Exception):
    """No agent has that name."""


class Call(NamedTuple):
    """The hook's command line: the agent, the event if it is named, and the directory of `-C`."""

    agent: str
    event: str
    directory: str | None


def read_call(arguments: Sequence[str]) -> Call:
    directory: str | None = None
    words: list[str] = []
    waiting = iter(arguments)
    for word in waiting:
        if word in _WITH_VALUE:
            value = next(waiting, None)
            directory = value if word == "-C" else directory
        elif not word.startswith("-"):
            words.append(word)
    words += ["", ""]
    return Call(words[0], words[1], directory)


def event_of(
    call: Call, payload: dict[str, Any], environment: Mapping[str, str], received_ns: int
) -> tuple[AgentEvent, Agent]:
    """The event, and the agent that sent it; raises `UnknownAgent`."""
    if call.agent not in AGENTS:
        raise UnknownAgent(f"unknown agent: {call.agent!r}; known agents: {', '.join(AGENTS)}")
    called, agent = agent_named(call.agent), agent_named(sender(call.agent, payload))
    if call.event and not any(name in payload for name in ("hook_event_name", "hookEventName")):
        payload = {**payload, "hook_event_name": call.event}
    if call.directory is not None:
        payload = {**payload, "cwd": call.directory, "workspace_roots": [], "workspaceRoots": []}
        environment = {}
    event = normalise(payload, agent, environment, called=called, received_ns=received_ns)
    return event, agent


def plain_answer(known: Agent | None, agent: str, event: AgentEvent | None) -> str:
    """A yes in the agent's own form, without a text."""
    try:
        return (known or agent_named(agent)).render(
            event or AgentEvent(agent, "", EventKind.OTHER), Reply()
        )
    except Exception:  # an unknown agent
        return "{}"


def normalise(
    payload: dict[str, Any],
    agent: Agent,
    environment: Mapping[str, str],
    *,
    called: Agent | None = None,
    received_ns: int = 0,
) -> AgentEvent:
    """`called` is the agent whose hook was called, if that is another one."""
    flat = agent.flatten(payload)
    name = text_of(flat, "hook_event_name", "hookEventName", "event", "hookName", "eventName")
    kind = event_kind(name, agent)
    tool_input = object_of(flat, "tool_input", "toolInput", "toolArgs", "tool_args", "parameters")
    tool = text_of(flat, "tool_name", "toolName", "tool")
    what = tool_kind(tool, agent.tools) if tool else ToolKind.OTHER
    command = command_of(tool_input) if what is ToolKind.SHELL else ""
    return AgentEvent(
        agent=agent.name,
        name=name,
        kind=kind,
        session=text_of(
            flat, "session_id", "sessionId", "conversation_id", "sessionID", "taskId", "thread_id"
        ),
        tool=tool,
        tool_kind=what,
        command=command[:_MOST_COMMAND],
        paths=paths_of(tool_input),
        fingerprint=_fingerprint(tool_input),
        tool_use_id=_id_of(flat, "tool_use_id", "toolUseId", "tool_call_id", "callID"),
        turn_id=_id_of(flat, "prompt_id", "turn_id", "generation_id", "messageID"),
        prompt=text_of(flat, "prompt", "message") if kind is EventKind.MESSAGE else "",
        cwd=text_of(flat, "cwd", "working_dir", "workingDirectory", "directory") or None,
        project=_project(flat, environment, agent, called),
        transcript_path=text_of(flat, "transcript_path", "transcriptPath") or None,
        transcript_message=agent.transcript_message if agent.reads_transcript else None,
        failure=_failure(name, flat) if kind is EventKind.AFTER_TOOL else None,
        carries=kind in agent.carries,
        received_ns=received_ns,
    )


def event_kind(name: str, agent: Agent) -> EventKind:
    key = _SEPARATORS.sub("", name).lower()
    return agent.events.get(key) or COMMON_EVENTS.get(key, EventKind.OTHER)


def _id_of(flat: Mapping[str, Any], *names: str) -> str | None:
    """The id, unless it cannot be stored: JSON can contain half a character."""
    text = text_of(flat, *names)[:_MOST_ID]
    return text.encode("utf-8", "backslashreplace").decode() or None


def _fingerprint(tool_input: Mapping[str, Any]) -> str:
    """Distinguishes calls with the same id by their arguments."""
    given = repr(tool_input).encode("utf-8", "backslashreplace")
    return f"{len(given)}-{crc32(given):08x}"


def _project(
    flat: Mapping[str, Any], environment: Mapping[str, str], *agents: Agent | None
) -> str | None:
    """The directory that the agent was opened in, which may differ from its current one."""
    for agent in agents:
        if agent is not None and (directory := environment.get(agent.project_variable)):
            return directory
    roots = texts_of(flat, "workspace_roots", "workspaceRoots")
    return roots[0] if roots else text_of(flat, "worktree", "project_dir") or None


def _failure(name: str, flat: Mapping[str, Any]) -> str | None:
    """Why a tool call failed, if it did; agents report this in different ways. A call that the user
    cancelled did not fail."""
    if flat.get("is_interrupt") is True:
        return None
    if name.lower().endswith("failure"):
        why = text_of(flat, "error", "error_message", "message", "failure_type")
        return (why or "failed")[:_MOST_FAILURE]
    if flat.get("success") is False:
        return (text_of(flat, "result", "error") or "failed")[:_MOST_FAILURE]
    answer = object_of(
        flat, "tool_response", "tool_result", "toolResult", "tool_output", "metadata"
    )
    result = text_of(answer, "resultType", "result_type")
    if result in ("failure", "denied", "error"):
        return result
    for sign in ("exit_code", "exitCode", "exit"):
        code = answer.get(sign)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            return f"exit status {code}"
    error = answer.get("error")
    if isinstance(error, dict):
        return (text_of(error, "message") or "failed")[:_MOST_FAILURE]
    return error[:_MOST_FAILURE] if isinstance(error, str) and error else None
