"""Undo and redo of restores: restores themselves, to the safety checkpoint of another."""

from __future__ import annotations

from dataclasses import replace

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import NothingToUndo
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import Operation, OperationKind, undo_lists
from holdfast.engine.components.touching import changed_components
from holdfast.engine.restore.records import RestoreRequest
from holdfast.engine.vault import Vault


def undo_request(vault: Vault, session_id: SessionId) -> RestoreRequest:
    """The restore that takes back the newest restore (or redo) of the session."""
    undoable = undo_lists(vault.catalog.operations(session_id)).undoable
    if not undoable:
        raise NothingToUndo(
            "this session has no restore to undo", hint="see what was done: holdfast log --records"
        )
    return _request(vault, session_id, undoable[-1], OperationKind.UNDO)


def redo_request(vault: Vault, session_id: SessionId) -> RestoreRequest:
    """The restore that takes back the newest undo."""
    redoable = undo_lists(vault.catalog.operations(session_id)).redoable
    if not redoable:
        raise NothingToUndo(
            "this session has no undone restore to redo",
            hint="see what was done: holdfast log --records",
        )
    return _request(vault, session_id, redoable[-1], OperationKind.REDO)


def _request(
    vault: Vault, session_id: SessionId, operation: Operation, kind: OperationKind
) -> RestoreRequest:
    safety = operation.safety
    target = vault.catalog.checkpoint(session_id, safety) if safety else None
    if target is None:
        raise NothingToUndo(
            "the safety checkpoint of that restore has been deleted",
            hint="choose a checkpoint yourself: holdfast log --records",
        )
    request = RestoreRequest(session_id, target, components=_touched(vault, operation, target))
    return replace(request, kind=kind, reverses=operation.sequence)


def _touched(vault: Vault, operation: Operation, safety: Checkpoint) -> tuple[tuple[str, str], ...]:
    """Components that the operation has changed: its record says how they were afterwards. What it
    left alone, an undo leaves alone too, whatever has become of it since."""
    record = operation.checkpoint
    made = vault.catalog.checkpoint(operation.session_id, record) if record else None
    return () if made is None else changed_components(vault, safety, made)
