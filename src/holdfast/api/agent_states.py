"""What agents store about themselves: their memory and context, kept with every checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.bootstrap.components import stored_agent_states
from holdfast.domain.errors import UsageError

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import SessionId

_LONGEST_ID = 128
_LARGEST_STATE_BYTES = 16 << 20
_MOST_AGENTS = 1_000


class AgentStates:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._store = opened.store
        self._states = stored_agent_states(opened.store)

    def set(self, session_id: SessionId, agent_id: str, state: Mapping[str, Any] | None) -> None:
        """Durable when it returns; None removes the agent."""
        text = _checked(agent_id, state)
        with self._store.hold():
            all_states = {session: dict(agents) for session, agents in self._states.load().items()}
            own = all_states.setdefault(session_id, {})
            if text is None:
                own.pop(agent_id, None)
            else:
                own[agent_id] = json.loads(text)
            if not own:
                del all_states[session_id]
            if sum(map(len, all_states.values())) > _MOST_AGENTS:
                raise UsageError(f"there are {_MOST_AGENTS} agents already", hint="take some away")
            self._states.replace(all_states)

    def forget(self, session_id: SessionId) -> None:
        """Of a session that is deleted."""
        with self._store.hold():
            if self._states.exist() and session_id in (known := self._states.load()):
                kept = {name: states for name, states in known.items() if name != session_id}
                self._states.replace(kept)

    def of(self, session_id: SessionId) -> dict[str, dict[str, Any]]:
        """The last state that each agent gave, or that a restore brought back."""
        own = self._states.load().get(session_id, {})
        return {agent: dict(state) for agent, state in own.items()}


def _checked(agent_id: str, state: Mapping[str, Any] | None) -> str | None:
    if not isinstance(agent_id, str) or not agent_id.strip() or not agent_id.isprintable():
        raise UsageError("an agent's id is a printable text that is not empty")
    if len(agent_id) > _LONGEST_ID:
        raise UsageError(f"an agent's id has at most {_LONGEST_ID} characters")
    if state is None:
        return None
    if not isinstance(state, Mapping):
        raise UsageError("an agent's state is a mapping that JSON can express")
    try:
        text = json.dumps(dict(state), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the state of {agent_id} cannot be expressed in JSON: {error}") from None
    if len(text) > _LARGEST_STATE_BYTES:
        raise UsageError(
            f"the state of {agent_id} takes {len(text):,} bytes",
            hint="keep what is large in files, and name them in agent_state",
        )
    return text
