"""The processes of agents that sessions belong to, so that a session ends with its agent.

An agent that is killed reports no end. The process above a hook counts as the agent's once a second
event has come from it, because some agents start a helper process for each event.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.ids import SessionId

if TYPE_CHECKING:
    from holdfast.ports.system import Processes


class AgentProcesses:
    """By workspace and session; of this daemon's life only."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._lock = threading.Lock()
        self._known: dict[tuple[Path, SessionId], tuple[str, bool]] = {}

    def seen(self, workspace: Path, session: SessionId, hook: int) -> None:
        """An event came from the process `hook`."""
        agent = self._processes.agent_above(hook) if hook else None
        if agent is None:
            return
        with self._lock:
            before = self._known.get((workspace, session))
            self._known[workspace, session] = (agent, before is not None and before[0] == agent)

    def gone(self, workspace: Path) -> list[SessionId]:
        """The sessions whose agent is not there any more."""
        with self._lock:
            known = [(key, *told) for key, told in self._known.items() if key[0] == workspace]
        return [
            key[1]
            for key, agent, is_sure in known
            if is_sure and not self._processes.is_alive(agent)
        ]

    def forget(self, workspace: Path, sessions: Sequence[SessionId]) -> None:
        with self._lock:
            for session in sessions:
                self._known.pop((workspace, session), None)
