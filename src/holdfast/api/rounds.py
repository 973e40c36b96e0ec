"""Rounds of a session: stretches of work that are approved, or reset to the last approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import SessionId
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.domain.restore.plan import RestorePlan
    from holdfast.domain.sessions import Round
    from holdfast.engine.restore.records import RestoreRequest
    from holdfast.engine.sessions.approval import ApprovalStatus as ApprovalStatus
    from holdfast.engine.sessions.approval import ApproveOutcome as ApproveOutcome
    from holdfast.engine.sessions.approval import ResetOutcome as ResetOutcome


class Rounds:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def all(self, session_id: SessionId) -> list[Round]:
        """Oldest first."""
        from holdfast.engine.sessions.approval import rounds_in

        return rounds_in(self._vault, session_id)

    def status(self, session_id: SessionId, *, look: bool = False) -> ApprovalStatus:
        """From the records alone; with `look`, unsaved work counts too."""
        return self._engine.approval(session_id, self._engine.look() if look else None)

    def approve(self, session_id: SessionId, message: str | None = None) -> ApproveOutcome:
        """Approve the present state, and begin the next round."""
        return self._engine.approve(session_id, message)

    def reset_request(self, session_id: SessionId) -> RestoreRequest:
        """The restore to the last approval, or to the first checkpoint of the session."""
        return self._engine.reset_request(session_id)

    def abandoned_by(self, request: RestoreRequest, plan: RestorePlan) -> str | None:
        """The round that a reset would abandon; None with nothing to reset."""
        from holdfast.engine.sessions.approval import active_round, has_nothing_to_reset

        if has_nothing_to_reset(self._vault, request, plan):
            return None
        return active_round(self._vault, request.session_id)

    def reset_outcome(self, session_id: SessionId, restored: RestoreOutcome) -> ResetOutcome:
        """What the restore of a reset did to the rounds."""
        from holdfast.engine.sessions.approval import reset_outcome

        return reset_outcome(self._vault, session_id, restored)
