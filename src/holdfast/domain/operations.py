"""The append-only operation log, and how undo and redo work on it.

Restores and resets are undoable. An undo moves its restore from the undo list to the redo list; a
redo does the reverse. A new restore clears the redo list. Entries are never removed from the log,
so the lists are computed from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.values.classes import dataclass


class OperationKind(StrEnum):
    CHECKPOINT = "checkpoint"
    RESTORE = "restore"
    UNDO = "undo"
    REDO = "redo"
    APPROVE = "approve"
    RESET = "reset"
    ABANDON = "abandon"
    """A reset made in the store that a session was imported from."""
    DELETE = "delete"
    ARCHIVE = "archive"
    PRUNE = "prune"
    IMPORT = "import"
    PURGE = "purge"
    ACCEPT = "accept"
    """A git commit of the checkpoints up to this one; its note is the commit."""
    REPAIR = "repair"
    """Replaces an entry that the log lost to damage."""
    LOST = "lost"
    """A checkpoint lost to damage."""


RESTORING_KINDS = (
    OperationKind.RESTORE,
    OperationKind.RESET,
    OperationKind.UNDO,
    OperationKind.REDO,
)
"""Operations that change the workspace and create a safety checkpoint."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One entry. `checkpoint` was created (or deleted) by it; `safety` is the checkpoint that
    undoes it. `reverses` is the sequence number of the operation that an undo or redo reversed."""

    sequence: int
    kind: OperationKind
    session_id: SessionId
    at_ns: int
    checkpoint: CheckpointId | None = None
    safety: CheckpointId | None = None
    head_before: CheckpointId | None = None
    reverses: int | None = None
    token: str | None = None
    note: str | None = None


def mark_of(operation: Operation) -> str:
    """Distinguishes an operation from one with the same number in another log."""
    return f"{operation.kind.value} {operation.at_ns} {operation.checkpoint}"


@dataclass(frozen=True, slots=True)
class UndoLists:
    """Both lists are newest last."""

    undoable: tuple[Operation, ...]
    redoable: tuple[Operation, ...]


def undo_lists(operations: Iterable[Operation]) -> UndoLists:
    undoable: dict[int, Operation] = {}
    redoable: dict[int, Operation] = {}
    restoring = (op for op in operations if op.kind in RESTORING_KINDS)
    for operation in sorted(restoring, key=lambda op: op.sequence):
        if operation.kind in (OperationKind.RESTORE, OperationKind.RESET):
            undoable[operation.sequence] = operation
            redoable.clear()
        elif operation.kind is OperationKind.UNDO and operation.reverses is not None:
            undoable.pop(operation.reverses, None)
            redoable[operation.sequence] = operation
        elif operation.kind is OperationKind.REDO and operation.reverses is not None:
            redoable.pop(operation.reverses, None)
            undoable[operation.sequence] = operation
    return UndoLists(tuple(undoable.values()), tuple(redoable.values()))
