"""The processes of agents that sessions belong to, so that a session ends with its agent.

An agent that is killed says nothing at its end. The process above a hook is taken for the agent's
once a second event has come from it: a helper that lives for one event is not.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.processes import agent_above, is_alive
from holdfast.domain.ids import SessionId
from holdfast.domain.sessions import SessionStatus

if TYPE_CHECKING:
    from holdfast.app.automation.watched_workspace import WatchedWorkspace


class AgentProcesses:
    """By workspace and session; of this daemon's life only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[Path, SessionId], tuple[str, bool]] = {}

    def seen(self, workspace: Path, session: SessionId, hook: int) -> None:
        """An event came from the process `hook`."""
        agent = agent_above(hook) if hook else None
        if agent is None:
            return
        with self._lock:
            before = self._known.get((workspace, session))
            self._known[workspace, session] = (agent, before is not None and before[0] == agent)

    def gone(self, workspace: Path) -> list[SessionId]:
        """The sessions whose agent is not there any more."""
        with self._lock:
            known = [(key, *told) for key, told in self._known.items() if key[0] == workspace]
        return [key[1] for key, agent, is_sure in known if is_sure and not is_alive(agent)]

    def forget(self, workspace: Path, sessions: Sequence[SessionId]) -> None:
        with self._lock:
            for session in sessions:
                self._known.pop((workspace, session), None)


def end_sessions(workspace: WatchedWorkspace, sessions: Sequence[SessionId]) -> None:
    """Those that are still active; `Busy` when somebody else is at work."""
    vault = workspace.opened.engine.vault
    with vault.lock.hold(wait=False):
        for name in sessions:
            session = vault.catalog.session(name)
            if session is not None and session.status is SessionStatus.ACTIVE:
                with vault.catalog.transaction() as transaction:
                    transaction.set_session_status(name, SessionStatus.ENDED)
            if workspace.session == name:
                workspace.session = None
