"""From the words of a hook's command line and its input to the event, and to the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply
from holdfast.interfaces.agents import AGENTS, dialect_of, sender
from holdfast.interfaces.hooks.normaliser import Dialect, normalise

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
) -> tuple[AgentEvent, Dialect]:
    """`UnknownAgent` when nobody sends such events."""
    agent = sender(call.agent, payload)
    if agent not in AGENTS:
        raise UnknownAgent(f"there is no agent {agent!r}; known are: {', '.join(AGENTS)}")
    dialect = dialect_of(agent)
    if call.event and not any(name in payload for name in ("hook_event_name", "hookEventName")):
        payload = {**payload, "hook_event_name": call.event}
    if call.directory is not None:
        payload = {**payload, "cwd": call.directory, "workspace_roots": [], "workspaceRoots": []}
        environment = {}
    return normalise(payload, dialect, environment, received_ns=received_ns), dialect


def plain_answer(dialect: Dialect | None, agent: str, event: AgentEvent | None) -> str:
    """What the agent takes for a yes, without anything to say."""
    try:
        known = dialect or dialect_of(agent)
        return known.render(event or AgentEvent(agent, "", EventKind.OTHER), Reply())
    except Exception:  # an agent nobody knows
        return "{}"
