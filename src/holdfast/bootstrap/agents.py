"""What is known about agents, for the layers that must not know any: part of the composition root.

Agents are plug-ins. The package named below finds the module that describes each; it is loaded by
its name, because it lies above this layer, and only when a workspace needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError

if TYPE_CHECKING:
    from holdfast.components.agents.component import KnownAgent
    from holdfast.domain.transcript_messages import MessageOf

_PLUG_INS = "holdfast.interfaces.agents"


def known_agents() -> dict[str, KnownAgent]:
    """Every agent by its name."""
    return {agent.name: agent for agent in import_module(_PLUG_INS).every_agent()}


def transcript_reader(name: str) -> MessageOf:
    """How a line of an agent's transcript is read."""
    readers: dict[str, MessageOf] = {
        agent.name: agent.transcript_message
        for agent in import_module(_PLUG_INS).every_agent()
        if agent.reads_transcript
    }
    if name not in readers:
        raise UsageError(
            f"there is no transcript format {name!r}", hint=f"known: {', '.join(readers)}"
        )
    return readers[name]
