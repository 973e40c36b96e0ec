"""What the agent has to be told: notices that restores left for its session (RB-10)."""

from __future__ import annotations

from holdfast.domain.ids import SessionId
from holdfast.engine.vault import Vault


def take_notices(vault: Vault, session_id: SessionId) -> tuple[str, ...]:
    """Each is taken once: who takes it tells it."""
    return ()
