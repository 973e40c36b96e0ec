"""HEAD: the checkpoint that the work is at, of one session or of the whole workspace.

    of a session: its newest state, with the records of restores looked through
    of the workspace, from the newest entry of the log that saved or restored, by any session:
      a checkpoint                       that one
      a restore to a checkpoint          that one
      a restore to a safety checkpoint   HEAD as it was when that was made: so it is after an undo
      a restore of some paths            HEAD as it was before
      one that was deleted               HEAD of its session, if that is left with any checkpoint

Imported checkpoints do not count for the workspace, which never was at them. Where nothing else was
ever done, HEAD is that of the current session.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.restore.selections import selection_of
from holdfast.engine.vault import Vault

MOVING_KINDS = (OperationKind.CHECKPOINT, *RESTORING_KINDS)
"""Operations that say what the workspace held at that moment."""
_CHUNK = 50


def head_checkpoint(vault: Vault, session_id: SessionId | None) -> Checkpoint | None:
    """The checkpoint that HEAD means in a session or, without one, in the workspace."""
    if session_id is not None:
        return _of_session(vault, session_id)
    wanted: CheckpointId | None = None
    for number, operation in enumerate(_newest_first(vault)):
        if operation.checkpoint is None or wanted not in (None, operation.checkpoint):
            continue
        made, wanted = vault.catalog.checkpoint(None, operation.checkpoint), None
        if made is None and number == 0:  # deleted: its session knows what it stood on
            made = _of_session(vault, operation.session_id)
            if made is None and vault.catalog.history(operation.session_id, limit=1):
                return None  # the work there is at none of those that are left
        if made is None or made.kind is Kind.SAFETY or selection_of(made) is not None:
            continue
        if made.kind is not Kind.RESTORE:
            return made
        target = made.restores_from and vault.catalog.checkpoint(None, made.restores_from)
        if not target:
            return made
        if not target.kind.is_record:
            return target
        wanted = target.id
    current = vault.catalog.current_session()
    return None if current is None else _of_session(vault, current)


def stands_alone(record: Checkpoint) -> bool:
    """A restore record whose target was deleted is the only one left with that state. After a
    restore of some paths HEAD stays where it was, whatever became of the target."""
    gone = record.kind is Kind.RESTORE and record.restores_from is None
    return gone and selection_of(record) is None


def _of_session(vault: Vault, session_id: SessionId) -> Checkpoint | None:
    session = vault.catalog.session(session_id)
    if session is None or session.head is None:
        return None
    at = vault.catalog.checkpoint(session_id, session.head)
    while at is not None and at.kind.is_record and not stands_alone(at):
        at = vault.catalog.checkpoint(session_id, at.parent) if at.parent else None
    return at


def _newest_first(vault: Vault) -> Iterator[Operation]:
    before: int | None = None
    while True:
        chunk = vault.catalog.operations_before(before, _CHUNK, kinds=MOVING_KINDS)
        yield from chunk
        if len(chunk) < _CHUNK:
            return
        before = chunk[-1].sequence
