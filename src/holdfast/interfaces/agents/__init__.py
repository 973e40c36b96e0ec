"""One module per agent: its events, its settings file, its hook entries, its tool names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.interfaces.agents.agent import Agent

AGENTS = tuple(
    sorted(
        file.removesuffix(".py").replace("_", "-")
        for file in os.listdir(os.path.dirname(__file__))
        if file.endswith(".py") and file not in ("__init__.py", "agent.py")
    )
)
"""Agent names, which are also the names of their modules."""


def agent_named(name: str) -> Agent:
    """Raises `KeyError` for an unknown agent."""
    from importlib import import_module

    if name not in AGENTS:
        raise KeyError(name)
    found: Agent = import_module(f"{__name__}.{name.replace('-', '_')}").AGENT
    return found


def every_agent() -> Iterator[Agent]:
    return map(agent_named, AGENTS)


def sender(called: str, payload: Mapping[str, Any]) -> str:
    """The agent that sent an event. Some agents run the hooks of another one. Other modules are
    loaded only if the called agent is not sure."""
    known = agent_named(called) if called in AGENTS else None
    if known is None or not known.hooks_run_by_others or known.is_sender(payload):
        return called
    others = [agent for agent in every_agent() if agent is not known]
    sure = [agent.name for agent in others if agent.is_sender(payload)]
    return next(iter(sure or [a.name for a in others if a.may_be_sender(payload)]), called)
