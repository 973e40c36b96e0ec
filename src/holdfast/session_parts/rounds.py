"""Rounds of a session as the library offers them: approve, reset, and where the work stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.engine.approval import reset_outcome, rounds_in

if TYPE_CHECKING:
    from holdfast.domain.ids import SessionId
    from holdfast.domain.rounds import Round
    from holdfast.engine.approval import ResetOutcome
    from holdfast.engine.engine import Engine


def reset(engine: Engine, session_id: SessionId) -> ResetOutcome:
    """Back to what was approved last, or to how the session began; the round is abandoned."""
    restored = engine.restore(engine.reset_request(session_id))
    return reset_outcome(engine.vault, session_id, restored)


def rounds(engine: Engine, session_id: SessionId) -> list[Round]:
    return rounds_in(engine.vault, session_id)
