"""Rounds of a session as the library offers them: approve, reset, and where the work stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.domain.ids import SessionId
    from holdfast.domain.rounds import Round
    from holdfast.engine.approval import ApprovalStatus, ApproveOutcome, ResetOutcome
    from holdfast.engine.engine import Engine


class Approving:
    """Part of `SessionCheckpointer`."""

    _engine: Engine
    _id: SessionId

    def approve(self, message: str | None = None) -> ApproveOutcome:
        """Lock in what the workspace holds now; the round is merged and the next one begins."""
        return self._engine.approve(self._id, message)

    def reset(self) -> ResetOutcome:
        """Back to what was approved last, or to the first checkpoint; the round is abandoned."""
        from holdfast.engine.approval import reset_outcome

        restored = self._engine.restore(self._engine.reset_request(self._id))
        return reset_outcome(self._engine.vault, self._id, restored)

    def approval(self, *, look: bool = False) -> ApprovalStatus:
        """The active round, whether HEAD differs from what was approved, and when that was. With
        `look` the workspace is scanned, so that edits which no checkpoint has yet count too."""
        return self._engine.approval(self._id, self._engine.look() if look else None)

    def rounds(self) -> list[Round]:
        """Every round, oldest first: merged, abandoned, and the active one last."""
        from holdfast.engine.approval import rounds_in

        return rounds_in(self._engine.vault, self._id)
