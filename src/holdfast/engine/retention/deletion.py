"""Deleting a checkpoint or a whole session, with content that only it has.

A checkpoint: its row immediately, its content if that frees enough space. A session:

    rows of its checkpoints, each with a log entry → its story → logs and free pages of the
    databases → unreferenced content

The log is never shortened and its entries name the session. So the session's own row stays, empty,
like that of a session that has not begun. If interrupted after the first step, the next cleanup
removes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import Busy, StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId, short
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import DeleteOutcome
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.engine.components.manifests import release_components
from holdfast.engine.conversation.notices import LAST_NOTICE
from holdfast.engine.history.history import head_checkpoint
from holdfast.engine.history.references import resolve
from holdfast.engine.retention.cleanup import collect, is_worth_collecting
from holdfast.engine.sessions.lifecycle import require_session
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


def delete(engine: Engine, checkpoint: Checkpoint) -> DeleteOutcome:
    """Delete a checkpoint, and content that nothing else needs."""
    with engine.recovered(required=True):
        saved = engine.save_unsaved_work(f"Deleted {checkpoint.name or short(checkpoint.id)}")
        outcome = _delete(engine.vault, checkpoint)
    warnings = (*saved.warnings, *outcome.warnings)
    return replace(outcome, warnings=warnings, saved_first=saved.checkpoint)


def _delete(vault: Vault, checkpoint: Checkpoint) -> DeleteOutcome:
    session_id = checkpoint.session_id
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
        if vault.has_story():
            vault.story.forget_checkpoints([checkpoint.id])
        if not is_worth_collecting(vault, checkpoint, near):
            return DeleteOutcome(checkpoint.id, 0, kept, waiting=True)
        return DeleteOutcome(checkpoint.id, collect(vault), kept)
    except StoreDamaged as error:
        return DeleteOutcome(checkpoint.id, 0, (f"no space was freed: {error.message}", *kept))


def _near(vault: Vault, checkpoint: Checkpoint, session: Session | None) -> list[Checkpoint]:
    """The checkpoint before it, and the newest one if that is another."""
    catalog = vault.catalog
    near = list(
        catalog.history(checkpoint.session_id, limit=1, records=True, before=checkpoint.sequence)
    )
    if session is not None and session.head not in (None, checkpoint.id):
        head = catalog.checkpoint(session.id, str(session.head))
        near += [head] if head is not None else []
    return near


@dataclass(frozen=True, slots=True)
class DeletedSession:
    session_id: SessionId
    checkpoints: int
    freed_bytes: int
    warnings: tuple[str, ...] = ()
    saved_first: CheckpointId | None = None


def delete_session(engine: Engine, session_id: SessionId) -> DeletedSession:
    """Delete a session and everything that only it has."""
    with engine.recovered(required=True):
        session = require_session(engine.vault, session_id)
        saved = engine.save_unsaved_work(f"Deleted the session {session_id}", outside=session_id)
        outcome = _delete_session(engine.vault, session)
    warnings = (*saved.warnings, *outcome.warnings)
    return replace(outcome, warnings=warnings, saved_first=saved.checkpoint)


def _delete_session(vault: Vault, session: Session) -> DeletedSession:
    rows = vault.catalog.history(session.id, records=True)
    now_ns = vault.clock.now_ns()
    with vault.catalog.transaction() as transaction:
        transaction.set_head(session.id, None)
        for row in rows:  # newest first, so that none has children
            transaction.add_operation(
                NewOperation(OperationKind.DELETE, session.id, now_ns, checkpoint=row.id)
            )
            transaction.remove_checkpoint(row.id)
        transaction.set_session_title(session.id, None)
        transaction.set_session_status(session.id, SessionStatus.ACTIVE)
    _select_other_session(vault, session.id)
    warnings = release_components(vault)
    checkpoints = sum(not row.kind.is_record for row in rows)
    try:
        _forget(vault, session.id)
        remarks = (*_erase_traces(vault), *warnings)
        return DeletedSession(session.id, checkpoints, collect(vault), remarks)
    except StoreDamaged as error:
        said = f"no space was freed: {error.message}"
        return DeletedSession(session.id, checkpoints, 0, (said, *warnings))


def _erase_traces(vault: Vault) -> list[str]:
    """Erase messages from the databases' logs and free pages; returns warnings."""
    try:
        if vault.has_story():
            vault.story.erase_traces()
        vault.catalog.erase_traces()
        vault.search.erase()
    except Busy:
        return [_TRACES_STAY]
    return []


_TRACES_STAY = (
    "another process was reading: traces of deleted messages stay in the store's logs until "
    "you run holdfast purge --text TEXT"
)


def _select_other_session(vault: Vault, deleted: SessionId) -> None:
    """Commands then use the session that the workspace is at."""
    head = head_checkpoint(vault, None)
    if vault.catalog.current_session() == deleted and head is not None:
        with vault.catalog.transaction() as transaction:
            transaction.set_current_session(head.session_id)


def _forget(vault: Vault, session_id: SessionId) -> None:
    if not vault.has_story():
        return
    vault.story.forget_session(session_id)
    newest = vault.catalog.newest_operation()
    if newest is not None:  # a new session with this id gets no notices of earlier restores
        vault.story.set_fact(session_id, LAST_NOTICE, str(newest.sequence), expected=None)
