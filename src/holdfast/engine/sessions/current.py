"""The current session: the one that commands, tools and requests use if they name none.

The newest conversation is recorded as the current one. Once it has ended, the workspace may have
moved on without it: then the session that the workspace is at is the current one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.domain.ids import SessionId
from holdfast.domain.sessions import SessionStatus
from holdfast.engine.save.save import add_session
from holdfast.engine.sessions.active_agents import effective_status
from holdfast.engine.vault import Vault

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


def current_session(vault: Vault) -> SessionId | None:
    """None before the first session."""
    recorded = vault.catalog.current_session()
    session = None if recorded is None else vault.catalog.session(recorded)
    if session is not None and effective_status(vault, session) is SessionStatus.ACTIVE:
        return session.id
    from holdfast.engine.history.history import head_checkpoint  # late: mostly it is active

    head = head_checkpoint(vault, None)
    return recorded if head is None else head.session_id


def ensure_current_session(engine: Engine, fresh_id: Callable[[], SessionId]) -> SessionId:
    """The session that commands use by default; created on first use."""
    vault = engine.vault
    known = _open_current_session(vault)
    if known is not None:
        return known
    with engine.recovered():
        known = _open_current_session(vault)
        if known is not None:
            return known
        session_id = fresh_id()
        with vault.catalog.transaction() as transaction:
            add_session(vault, transaction, session_id)
            transaction.set_current_session(session_id)
        return session_id


def _open_current_session(vault: Vault) -> SessionId | None:
    """The current session, unless it is archived and accepts no more checkpoints. None if only
    programs have worked, because nothing is added to their sessions."""
    catalog = vault.catalog
    known = None if catalog.current_session() is None else current_session(vault)
    session = catalog.session(known) if known is not None else None
    if session is None or session.status is SessionStatus.ARCHIVED:
        return None
    return session.id
