"""The sessions of a workspace as listed for people.

A session without checkpoints is not listed, because there is nothing to restore.
"""

from __future__ import annotations

from holdfast.domain.ids import SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.engine.history.history import head_checkpoint
from holdfast.engine.retention.protection import NOT_ACTIVITY, last_message_ns
from holdfast.engine.sessions.active_agents import effective_status
from holdfast.engine.sessions.approval import approval
from holdfast.engine.sessions.current import current_session
from holdfast.engine.vault import Vault
from holdfast.values.classes import dataclass


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line of the list. `unapproved` counts checkpoints without approval. `is_current`:
    commands that add to a session use it. `has_head`: the workspace is at one of its states.
    `active_session` is the round with work to approve, None if everything is approved."""

    session: Session
    status: SessionStatus
    checkpoints: int
    unapproved: int
    last_activity_ns: int
    is_current: bool
    has_head: bool
    active_session: str | None
    last_approved_at_ns: int | None


def sessions_overview(vault: Vault) -> list[SessionSummary]:
    """Sessions with checkpoints, by last activity, newest first."""
    current = current_session(vault)
    head = head_checkpoint(vault, None)
    at_head = head.session_id if head else None
    found = [_summary(vault, session, current, at_head) for session in listed_sessions(vault)]
    return sorted(found, key=lambda one: one.last_activity_ns, reverse=True)


def listed_sessions(vault: Vault) -> list[Session]:
    """Sessions with checkpoints, oldest first. A deleted session's row stays in the catalog,
    because the log names it, but it is never listed."""
    return [one for one in vault.catalog.sessions() if vault.catalog.counts(one.id).checkpoints]


def remaining_sessions(vault: Vault) -> list[Session]:
    """Sessions that were not deleted, oldest first."""
    return [one for one in vault.catalog.sessions() if not is_deleted(vault, one)]


def is_deleted(vault: Vault, session: Session) -> bool:
    """Whether only the row is left. A session without HEAD was deleted if the log names it.
    Otherwise it has not made its first checkpoint yet, even if it was archived."""
    if session.head is not None:
        return False
    archived = (OperationKind.ARCHIVE,)
    return vault.catalog.latest_operation(session.id, other_than=archived) is not None


def _summary(
    vault: Vault,
    session: Session,
    current: SessionId | None,
    at_head: SessionId | None,
) -> SessionSummary:
    where = approval(vault, session.id)
    return SessionSummary(
        session,
        effective_status(vault, session),
        vault.catalog.counts(session.id).checkpoints,
        where.checkpoints if where.has_unapproved else 0,
        _last_activity_ns(vault, session),
        session.id == current,
        session.id == at_head,
        where.active_session,
        where.last_approved_at_ns,
    )


def _last_activity_ns(vault: Vault, session: Session) -> int:
    """As retention sees it, but from one row: lists are shown often and may be long."""
    latest = vault.catalog.latest_operation(session.id, other_than=NOT_ACTIVITY)
    done_ns = 0 if latest is None else latest.at_ns
    return max(session.created_at_ns, done_ns, last_message_ns(vault, session.id))
