"""Small JSON files of the store: agent states, names of external files, nested repositories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from holdfast.adapters.local.layout import AGENT_STATES, EXTERNAL_PATHS, NESTED_REPOSITORIES
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.external_paths import MOST_NAMES
from holdfast.domain.paths import from_text, is_within, to_text
from holdfast.ports.component_notes import AgentStatesBySession


class Notes(Protocol):
    """Small files of a store by their names, such as `StoreNotes` has them."""

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, data: bytes) -> None: ...


class StoredAgentStates:
    """See `holdfast.ports.component_notes.AgentStates`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def exist(self) -> bool:
        return self._notes.exists(AGENT_STATES)

    def load(self) -> AgentStatesBySession:
        data = self._notes.read(AGENT_STATES)
        if data is None:
            return {}
        try:
            states = json.loads(data)
            for agents in states.values():
                if not all(isinstance(state, dict) for state in agents.values()):
                    raise ValueError("a state is no object")
        except (ValueError, AttributeError, RecursionError):
            raise StoreDamaged(
                "what agents gave to the store is unusable",
                hint="remove the file agent-states from the store, then let each agent give its "
                "state again or restore a checkpoint",
            ) from None
        loaded: AgentStatesBySession = states
        return loaded

    def replace(self, states: AgentStatesBySession) -> None:
        text = json.dumps(states, separators=(",", ":"), sort_keys=True)
        self._notes.write(AGENT_STATES, text.encode())


class StoredExternalPaths:
    """See `holdfast.ports.component_notes.ExternalPaths`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def exist(self) -> bool:
        return self._notes.exists(EXTERNAL_PATHS)

    def load(self) -> list[bytes]:
        data = self._notes.read(EXTERNAL_PATHS)
        if data is None:
            return []
        try:
            paths = [from_text(text) for text in json.loads(data)]
            if not all(path.startswith(b"/") for path in paths):
                raise ValueError("a path is not absolute")
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise StoreDamaged(
                "the names of files outside the workspace are unusable",
                hint="remove the file external-paths from the store; tools will name them again",
            ) from None
        return paths

    def add(self, paths: Sequence[bytes]) -> None:
        try:
            known = self.load()
        except StoreDamaged:
            known = []
        older = [path for path in known if path not in paths]
        self._keep([*older, *dict.fromkeys(paths)], known)

    def drop(self, paths: Sequence[bytes]) -> None:
        known = self.load()
        self._keep([n for n in known if not any(is_within(n, path) for path in paths)], known)

    def _keep(self, names: list[bytes], known: list[bytes]) -> None:
        if names != known:
            data = json.dumps([to_text(path) for path in names[-MOST_NAMES:]])
            self._notes.write(EXTERNAL_PATHS, data.encode())


class StoredNestedRepositories:
    """See `holdfast.ports.component_notes.NestedRepositories`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def load(self) -> list[bytes]:
        data = self._notes.read(NESTED_REPOSITORIES)
        try:
            return [] if data is None else [from_text(text) for text in json.loads(data)]
        except (ValueError, TypeError, AttributeError, RecursionError):
            return []  # at worst a reference stays that keeps some commits alive

    def add(self, git_directories: Sequence[bytes]) -> None:
        known = self.load()
        all_of_them = sorted({*known, *git_directories})
        if all_of_them != known:
            data = json.dumps([to_text(path) for path in all_of_them])
            self._notes.write(NESTED_REPOSITORIES, data.encode())
