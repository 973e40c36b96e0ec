"""The current session: the one that commands, tools and requests use if they name none.

The newest conversation is recorded as the current one. Once it has ended, the workspace may have
moved on without it: then the session that the workspace is at is the current one.
"""

from __future__ import annotations

from holdfast.domain.ids import SessionId
from holdfast.domain.sessions import SessionStatus
from holdfast.engine.history.history import head_checkpoint
from holdfast.engine.sessions.active_agents import effective_status
from holdfast.engine.vault import Vault


def current_session(vault: Vault) -> SessionId | None:
    """None before the first session."""
    recorded = vault.catalog.current_session()
    session = None if recorded is None else vault.catalog.session(recorded)
    if session is not None and effective_status(vault, session) is SessionStatus.ACTIVE:
        return session.id
    head = head_checkpoint(vault, None)
    return recorded if head is None else head.session_id
