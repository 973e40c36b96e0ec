"""What agents said about themselves through the library, until they say something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

AgentStatesBySession = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Session id, agent id, and what the agent gave: an object of JSON."""


class AgentStates(Protocol):
    """Durable, private, and sealed where the store is encrypted."""

    def exist(self) -> bool:
        """Whether anything was ever given; one system call."""
        ...

    def load(self) -> AgentStatesBySession:
        """Everything that was given last; `StoreDamaged` when it cannot be read."""
        ...

    def replace(self, states: AgentStatesBySession) -> None:
        """All at once; durable when it returns. Called with the store's lock held."""
        ...
