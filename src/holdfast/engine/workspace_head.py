"""HEAD: the checkpoint that the work is at, of one session or of the whole workspace.

    of a session: its newest state, with the records of restores looked through
    of the workspace: HEAD of the session that saved or restored last

Imported checkpoints do not count for the workspace, which never was at them. Where nothing else was
ever done, HEAD is that of the current session.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import RESTORING_KINDS, OperationKind
from holdfast.engine.vault import Vault

MOVING_KINDS = (OperationKind.CHECKPOINT, *RESTORING_KINDS)
"""Operations that say what the workspace held at that moment."""
_CHUNK = 50


def standing_on(vault: Vault, session_id: SessionId | None) -> Checkpoint | None:
    """The checkpoint that HEAD means in a session or, without one, in the workspace."""
    if session_id is not None:
        return _of_session(vault, session_id)
    for active in _newest_first(vault):
        found = _of_session(vault, active)
        if found is not None:
            return found
    return None


def stands_alone(record: Checkpoint) -> bool:
    """A restore record whose target was deleted is the only one left with that state."""
    return record.kind is Kind.RESTORE and record.restores_from is None


def _of_session(vault: Vault, session_id: SessionId) -> Checkpoint | None:
    session = vault.catalog.session(session_id)
    if session is None or session.head is None:
        return None
    at = vault.catalog.checkpoint(session_id, session.head)
    while at is not None and at.kind.is_record and not stands_alone(at):
        at = vault.catalog.checkpoint(session_id, at.parent) if at.parent else None
    return at


def _newest_first(vault: Vault) -> Iterator[SessionId]:
    """Sessions by what they saved or restored last, each once; the current one after them all."""
    seen: set[SessionId] = set()
    before: int | None = None
    while True:
        chunk = vault.catalog.operations_before(before, _CHUNK, kinds=MOVING_KINDS)
        for operation in chunk:
            if operation.session_id not in seen:
                seen.add(operation.session_id)
                yield operation.session_id
        if len(chunk) < _CHUNK:
            break
        before = chunk[-1].sequence
    current = vault.catalog.current_session()
    if current is not None and current not in seen:
        yield current
