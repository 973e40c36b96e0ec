"""Whether a session takes more work: an ended one resumes, an archived one refuses.

What adds to a session by hand (a checkpoint, a message) makes one that has ended active again, and
says so. What decides about its work (approve, reset, restore) leaves it ended, and so does what an
agent's last events still bring.
The number of manual checkpoints can be limited by a setting. There is no limit by default, and none
at all for automatic checkpoints: a rate never costs a state.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import LimitReached, Refused
from holdfast.domain.ids import SessionId
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.wording import count_words
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


def resumed_remark(session_id: SessionId) -> str:
    from holdfast.domain.wording import Remark  # imported late: hardly any save needs it

    return Remark(f"the session {session_id!r} had ended; it is active again")


def resume(vault: Vault, session_id: SessionId) -> None:
    """Let one that has ended go on, if nobody else has done it meanwhile."""
    with vault.lock.hold():
        session = require_open_session(vault, session_id)
        if session is not None and session.status is SessionStatus.ENDED:
            with vault.catalog.transaction() as transaction:
                transaction.set_session_status(session_id, SessionStatus.ACTIVE)


def require_checkpoint_allowed(vault: Vault, session_id: SessionId, kind: Kind) -> None:
    """`LimitReached` when a manual checkpoint is one more than the owner of the setting allows."""
    most = vault.settings.max_manual_checkpoints
    if kind is not Kind.MANUAL or not most:
        return
    if vault.catalog.count(session_id, (kind,)) >= most:
        raise LimitReached(
            f"the session has {count_words(most, 'manual checkpoint')}, "
            "as many as the setting max_manual_checkpoints allows",
            hint=f"allow more: holdfast config set max_manual_checkpoints {2 * most} "
            "(0: no limit); or delete some: holdfast delete REF",
        )
