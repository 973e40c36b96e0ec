"""From the words of a hook's command line and its input to the event, and to the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply
from holdfast.interfaces.agents import AGENTS, agent_named, sender
from holdfast.interfaces.agents.agent import Agent
from holdfast.interfaces.hooks.normaliser import normalise

_WITH_VALUE = ("-C", "--session")


class UnknownAgent(Exception):
    """No adapter by that name."""


class Call(NamedTuple):
    """What was asked for: the agent that is named, the event if it is, the directory of `-C`."""

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
    """`UnknownAgent` when nobody sends such events."""
    if call.agent not in AGENTS:
        raise UnknownAgent(f"there is no agent {call.agent!r}; known are: {', '.join(AGENTS)}")
    called, agent = agent_named(call.agent), agent_named(sender(call.agent, payload))
    if call.event and not any(name in payload for name in ("hook_event_name", "hookEventName")):
        payload = {**payload, "hook_event_name": call.event}
    if call.directory is not None:
        payload = {**payload, "cwd": call.directory, "workspace_roots": [], "workspaceRoots": []}
        environment = {}
    event = normalise(payload, agent, environment, called=called, received_ns=received_ns)
    return event, agent


def plain_answer(known: Agent | None, agent: str, event: AgentEvent | None) -> str:
    """What the agent takes for a yes, without anything to say."""
    try:
        return (known or agent_named(agent)).render(
            event or AgentEvent(agent, "", EventKind.OTHER), Reply()
        )
    except Exception:  # an agent nobody knows
        return "{}"
