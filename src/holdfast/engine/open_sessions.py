"""Whether a session takes more work: one that has ended goes on with it, an archived one does not.

What adds to a session by hand (a checkpoint, a message) makes one that has ended active again, and
says so. What decides about its work (approve, reset, restore) leaves it ended, and so does what an
agent's last events still bring.
"""

from __future__ import annotations

from holdfast.domain.errors import Refused
from holdfast.domain.ids import SessionId
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.engine.vault import Vault


def require_open_session(vault: Vault, session_id: SessionId) -> Session | None:
    """The session, None if there is none yet; `Refused` for one that was archived."""
    session = vault.catalog.session(session_id)
    if session is not None and session.status is SessionStatus.ARCHIVED:
        raise Refused(
            f"the session {session_id!r} is archived and takes nothing more",
            hint="begin another one, under another name; this one can still be listed, restored "
            "and annotated",
        )
    return session


def resumed_words(session_id: SessionId) -> str:
    from holdfast.domain.remarks import Remark  # imported late: hardly any save needs it

    return Remark(f"the session {session_id!r} had ended; it is active again")


def resume(vault: Vault, session_id: SessionId) -> None:
    """Let one that has ended go on, if nobody else has done it meanwhile."""
    with vault.access.exclusive():
        session = require_open_session(vault, session_id)
        if session is not None and session.status is SessionStatus.ENDED:
            with vault.catalog.transaction() as transaction:
                transaction.set_session_status(session_id, SessionStatus.ACTIVE)
