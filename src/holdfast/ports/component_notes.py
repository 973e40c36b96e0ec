"""Facts that components keep between checkpoints: agent states, external paths, repositories.

All are durable, private, and sealed where the store is encrypted. Writers hold the store's lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

AgentStatesBySession = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Session id, agent id, and what the agent gave: an object of JSON."""


class AgentStates(Protocol):
    """What agents reported about themselves through the library last."""

    def exist(self) -> bool:
        """Whether anything was ever given; one system call."""
        ...

    def load(self) -> AgentStatesBySession:
        """Everything that was given last; `StoreDamaged` when it cannot be read."""
        ...

    def replace(self, states: AgentStatesBySession) -> None:
        """All at once; durable when it returns."""
        ...


class ExternalPaths(Protocol):
    """Paths outside the workspace that tools have named, until others take their place."""

    def exist(self) -> bool:
        """Whether any was ever named; one system call."""
        ...

    def load(self) -> list[bytes]:
        """Absolute paths, the one that was named first at the beginning; `StoreDamaged` when they
        cannot be read."""
        ...

    def add(self, paths: Sequence[bytes]) -> None:
        """Name some, which are then the newest; durable when it returns."""
        ...

    def drop(self, paths: Sequence[bytes]) -> None:
        """Take away these and all below them; durable when it returns."""
        ...


class NestedRepositories(Protocol):
    """Repositories inside the workspace in which commits are kept alive for checkpoints. They are
    released when the last checkpoint that knew of them is gone."""

    def load(self) -> list[bytes]:
        """Git directories, relative to the workspace; none when the note cannot be used."""
        ...

    def add(self, git_directories: Sequence[bytes]) -> None:
        """Note some more; durable when it returns."""
        ...
