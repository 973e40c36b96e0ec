"""What agents gave through the library, in one small file of the store."""

from __future__ import annotations

import json

from holdfast.adapters.local.store_place import StorePlace
from holdfast.domain.errors import StoreDamaged
from holdfast.ports.agent_states import AgentStatesBySession


class StoredAgentStates:
    """See `holdfast.ports.agent_states.AgentStates`."""

    def __init__(self, place: StorePlace) -> None:
        self._place = place

    def exist(self) -> bool:
        return self._place.has_agent_states()

    def load(self) -> AgentStatesBySession:
        data = self._place.read_agent_states()
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
        self._place.write_agent_states(text.encode())
