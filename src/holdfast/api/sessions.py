"""The sessions of a workspace, and their rounds of work: approved, or reset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import CheckpointId, SessionId
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.domain.restore.plan import RestorePlan
    from holdfast.domain.sessions import Round, Session, SessionStatus
    from holdfast.engine.restore.records import RestoreRequest
    from holdfast.engine.retention.deletion import DeletedSession
    from holdfast.engine.sessions.active_agents import ActiveAgent as ActiveAgent
    from holdfast.engine.sessions.active_agents import StoppedAgent as StoppedAgent
    from holdfast.engine.sessions.approval import ApprovalStatus as ApprovalStatus
    from holdfast.engine.sessions.approval import ApproveOutcome as ApproveOutcome
    from holdfast.engine.sessions.approval import ResetOutcome as ResetOutcome
    from holdfast.engine.sessions.overview import SessionSummary as SessionSummary


class Sessions:
    """Sessions of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._opened = opened
        self._engine, self._vault = opened.engine, opened.engine.vault

    def overview(self) -> list[SessionSummary]:
        """Sessions with checkpoints, most recently active first."""
        from holdfast.engine.sessions.overview import sessions_overview

        return sessions_overview(self._vault)

    def listed(self) -> list[Session]:
        """Sessions with checkpoints, oldest first."""
        from holdfast.engine.sessions.overview import listed_sessions

        return listed_sessions(self._vault)

    def all(self) -> Sequence[Session]:
        """All sessions, even without checkpoints, oldest first."""
        return self._vault.catalog.sessions()

    def get(self, session_id: SessionId) -> Session | None:
        return self._vault.catalog.session(session_id)

    def require(self, session_id: SessionId) -> Session:
        """A session by its exact id. `NotFound` names the workspace that has it, or the sessions
        here."""
        found = self.get(session_id)
        if found is None:
            from holdfast.bootstrap.stores import unknown_session

            raise unknown_session(session_id, [one.id for one in self.listed()])
        return found

    def find(self, reference: str) -> Session:
        """A session by id, title or the first characters of its id; `NotFound` otherwise."""
        from holdfast.engine.history.references import find_session

        return find_session(self._vault, reference)

    def status(self, session: Session) -> SessionStatus:
        """A session whose agent is gone counts as `ended`."""
        from holdfast.engine.sessions.active_agents import effective_status

        return effective_status(self._vault, session)

    def active_agents(self) -> list[ActiveAgent]:
        """Agents whose sessions have not ended, oldest first."""
        from holdfast.engine.sessions.active_agents import active_agents

        return active_agents(self._vault)

    def stop_agents(self, *, wait_s: float = 5.0) -> list[StoppedAgent]:
        """Ask active agents to exit (SIGTERM to the process that hooks recorded), and wait."""
        from holdfast.engine.sessions.active_agents import stop_agents

        return stop_agents(self._vault, wait_s=wait_s)

    def last_checkpoint_by_agent(self) -> dict[str, datetime]:
        """The time of each agent's last checkpoint."""
        catalog, found = self._vault.catalog, dict[str, int]()
        for session in catalog.sessions():
            if session.agent is None:
                continue
            newest = catalog.history(session.id, limit=1)
            made = newest[0].created_at_ns if newest else session.created_at_ns
            found[session.agent] = max(made, found.get(session.agent, 0))
        return {agent: datetime.fromtimestamp(ns / 1e9, UTC) for agent, ns in found.items()}

    def current(self) -> SessionId | None:
        """The session that is used where none is named; None before the first."""
        from holdfast.engine.sessions.current import current_session

        return current_session(self._vault)

    def ensure_current(self, fresh_id: Callable[[], SessionId]) -> SessionId:
        """The current session, or a new one that becomes the current one."""
        from holdfast.engine.sessions.current import ensure_current_session

        return ensure_current_session(self._engine, fresh_id)

    def checkpoint_count(self, session_id: SessionId | None) -> int:
        """The number of checkpoints in one session or, for None, in all."""
        return self._vault.catalog.counts(session_id).checkpoints

    def start(
        self, session_id: SessionId, *, title: str | None = None, agent: str | None = None
    ) -> None:
        """Start the session with a checkpoint of the current state, or resume it."""
        from holdfast.engine.edits.open_activities import inside
        from holdfast.engine.sessions.lifecycle import start

        own = inside(self._engine.vault)
        start(self._engine, session_id, title=title, agent=agent, inside=own)

    def rename(self, session_id: SessionId, title: str) -> None:
        from holdfast.engine.sessions.lifecycle import rename

        rename(self._engine, session_id, title)

    def end(self, session_id: SessionId) -> Session:
        from holdfast.engine.sessions.lifecycle import end

        return end(self._engine, session_id)

    def archive(self, session_id: SessionId) -> bool:
        """Close the session; False if it does not exist."""
        from holdfast.engine.sessions.lifecycle import archive

        return archive(self._engine, session_id)

    def delete(self, session_id: SessionId) -> DeletedSession:
        """Delete the session and everything that only it has. This cannot be undone."""
        from holdfast.api.conversation import AgentStates
        from holdfast.engine.retention.deletion import delete_session

        AgentStates(self._opened).forget(session_id)
        return delete_session(self._engine, session_id)


class Rounds:
    """Rounds in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def all(self, session_id: SessionId) -> list[Round]:
        """All rounds, oldest first, each with its number of checkpoints."""
        from holdfast.engine.sessions.approval import counted_rounds

        return counted_rounds(self._vault, session_id)

    def approved(self, session_id: SessionId) -> set[CheckpointId]:
        """The checkpoints that approvals ended a round with."""
        from holdfast.engine.sessions.approval import rounds_in

        found = rounds_in(self._vault, session_id)
        return {one.approved for one in found if one.approved is not None}

    def status(self, session_id: SessionId, *, look: bool = False) -> ApprovalStatus:
        """The approval status from recorded state; with `look`, unsaved work counts too."""
        from holdfast.engine.sessions.approval import approval

        return approval(self._vault, session_id, self._engine.scan() if look else None)

    def approve(self, session_id: SessionId, message: str | None = None) -> ApproveOutcome:
        """Approve the current state, and begin the next round."""
        from holdfast.engine.sessions.approval import approve

        return approve(self._engine, session_id, message)

    def reset_request(self, session_id: SessionId) -> RestoreRequest:
        """The restore to the last approval, or to the first checkpoint of the session."""
        from holdfast.engine.sessions.approval import reset_request

        return reset_request(self._vault, session_id)

    def abandoned_by(self, request: RestoreRequest, plan: RestorePlan) -> str | None:
        """The round that a reset would abandon; None if there is nothing to reset."""
        from holdfast.engine.sessions.approval import active_round, has_nothing_to_reset

        if has_nothing_to_reset(self._vault, request, plan):
            return None
        return active_round(self._vault, request.session_id)

    def reset_outcome(self, session_id: SessionId, restored: RestoreOutcome) -> ResetOutcome:
        """What a reset's restore did to the rounds."""
        from holdfast.engine.sessions.approval import reset_outcome

        return reset_outcome(self._vault, session_id, restored)
