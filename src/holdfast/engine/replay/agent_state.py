"""Agent state at a checkpoint: states set through the Python API, and captured memory files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.engine.components.contents import StoreSource
from holdfast.engine.components.manifests import state_of
from holdfast.engine.vault import Vault
from holdfast.ports.component import ComponentProblem, FileComponent
from holdfast.ports.progress import NoProgress
from holdfast.values.classes import dataclass

_AGENTS = "agents"
_GIVEN = "given"


@dataclass(frozen=True, slots=True)
class AgentState:
    """A state that an agent set through the library in a session, as of the checkpoint."""

    session_id: SessionId
    agent: str
    state: dict[str, Any]


def agent_states(vault: Vault, checkpoint: Checkpoint) -> list[AgentState]:
    state = state_of(vault.objects, checkpoint, _AGENTS)
    if state is None or state.content(_GIVEN) is None:
        return []
    data = b"".join(StoreSource(vault.objects, state, NoProgress()).read(_GIVEN))
    try:
        return [
            AgentState(SessionId(session), agent, dict(given))
            for session, agents in json.loads(data).items()
            for agent, given in agents.items()
        ]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreDamaged(f"the agent states of the checkpoint are unusable: {error}") from None


def memory_files(vault: Vault, checkpoint: Checkpoint) -> Iterator[tuple[bytes, bytes]]:
    """The path and content of each memory file, in order."""
    state = state_of(vault.objects, checkpoint, _AGENTS)
    component = next((one for one in vault.components.all() if one.name == _AGENTS), None)
    if state is None or state.failure is not None or not isinstance(component, FileComponent):
        return
    source = StoreSource(vault.objects, state, NoProgress())
    try:
        named = component.files(state, source)
    except ComponentProblem as error:
        raise StoreDamaged(str(error)) from None
    for path, name in sorted(named.items()):
        yield path, b"".join(source.read(name))
