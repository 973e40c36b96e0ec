"""How many checkpoints a session may take: by hand in all, and automatically in an hour.

A person who reaches the limit is told which setting it is. An automatic checkpoint is made all the
same, because the state of now is worth more than one of a minute ago: it takes the place of the
automatic one before it, unless that has a name, is approved, is where the session began, or a
restore has gone elsewhere since.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import AUTOMATIC_KINDS, Checkpoint, Kind
from holdfast.domain.errors import LimitReached, StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.sizes import count_words
from holdfast.engine.vault import Vault

_HOUR_NS = 3600 * 1_000_000_000


def require_room(vault: Vault, session_id: SessionId, kind: Kind) -> Checkpoint | None:
    """`LimitReached` when a checkpoint by hand is one too many; the checkpoint whose place an
    automatic one has to take, if it is one too many."""
    if kind is Kind.MANUAL:
        most = vault.settings.max_manual_checkpoints
        if most and vault.catalog.count(session_id, (kind,)) >= most:
            raise LimitReached(
                f"the session has {count_words(most, 'checkpoint')} made by hand, "
                "as many as the setting max_manual_checkpoints allows",
                hint=f"allow more: holdfast config set max_manual_checkpoints {2 * most} "
                "(0: no limit); or drop some: holdfast delete REF",
            )
    elif kind in AUTOMATIC_KINDS:
        most = vault.settings.max_automatic_per_hour
        since_ns = vault.clock.now_ns() - _HOUR_NS
        if most and vault.catalog.count(session_id, AUTOMATIC_KINDS, since_ns=since_ns) >= most:
            newest = vault.catalog.newest_of(session_id, AUTOMATIC_KINDS)
            return None if newest is None or _must_stay(vault, newest) else newest
    return None


def _must_stay(vault: Vault, checkpoint: Checkpoint) -> bool:
    """What retention never drops gives its place to nobody: then there is one more than asked.
    Neither does what a restore has left, or gone back to: it may be all there is of that work."""
    if not _leads_to_head(vault, checkpoint):
        return True
    first = vault.catalog.first_checkpoint(checkpoint.session_id)
    is_first = first is not None and first.id == checkpoint.id
    approvals = vault.catalog.operations(checkpoint.session_id, kinds=(OperationKind.APPROVE,))
    is_approved = any(approval.checkpoint == checkpoint.id for approval in approvals)
    return is_first or checkpoint.name is not None or is_approved or _is_told_of(vault, checkpoint)


def _leads_to_head(vault: Vault, checkpoint: Checkpoint) -> bool:
    """Whether all that came after it was made by going on from it."""
    session = vault.catalog.session(checkpoint.session_id)
    at_id = session.head if session is not None else None
    while at_id is not None and at_id != checkpoint.id:
        at = vault.catalog.checkpoint(checkpoint.session_id, at_id)
        if at is None or at.kind.is_record or at.sequence < checkpoint.sequence:
            return False
        at_id = at.parent
    return at_id is not None


def _is_told_of(vault: Vault, checkpoint: Checkpoint) -> bool:
    """Whether somebody wrote about it, or an edit or attempt would go back to it. What cannot be
    read may have been either."""
    if not vault.access.has_story():
        return False
    try:
        if any(a.checkpoint == checkpoint.id for a in vault.story.open_activities()):
            return True
        return bool(vault.story.annotations(checkpoint.session_id, checkpoint.id))
    except StoreDamaged:
        return True
