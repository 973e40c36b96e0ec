"""Dropping one checkpoint from the history: its row at once, its content when that is worth it."""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import DeleteOutcome
from holdfast.domain.sessions import Session
from holdfast.engine.components.releasing import release_components
from holdfast.engine.prune import collect, is_worth_collecting
from holdfast.engine.references import resolve
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation


def delete(vault: Vault, session_id: SessionId, checkpoint: Checkpoint) -> DeleteOutcome:
    """The caller holds the lock."""
    session = vault.catalog.session(session_id)
    checkpoint = resolve(vault, session_id, checkpoint.id)
    near = _near(vault, checkpoint, session)
    with vault.catalog.transaction() as transaction:
        transaction.add_operation(
            NewOperation(
                OperationKind.DELETE,
                session_id,
                vault.clock.now_ns(),
                checkpoint=checkpoint.id,
                head_before=session.head if session else None,
            )
        )
        if session is not None and session.head == checkpoint.id:
            transaction.set_head(session_id, checkpoint.parent)
        transaction.remove_checkpoint(checkpoint.id)
    kept = release_components(vault)
    try:
        if vault.access.has_story():
            vault.story.forget_checkpoints([checkpoint.id])
        if not is_worth_collecting(vault, checkpoint, near):
            return DeleteOutcome(checkpoint.id, 0, kept, waiting=True)
        return DeleteOutcome(checkpoint.id, collect(vault), kept)
    except StoreDamaged as error:
        return DeleteOutcome(checkpoint.id, 0, (f"no space was freed: {error.message}", *kept))


def _near(vault: Vault, checkpoint: Checkpoint, session: Session | None) -> list[Checkpoint]:
    """The checkpoint before it, and the newest one, unless it is that itself."""
    catalog = vault.catalog
    near = list(
        catalog.history(checkpoint.session_id, limit=1, records=True, before=checkpoint.sequence)
    )
    if session is not None and session.head not in (None, checkpoint.id):
        head = catalog.checkpoint(session.id, str(session.head))
        near += [head] if head is not None else []
    return near
