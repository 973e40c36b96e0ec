"""The recorded actions of a session in order, each with the state it led to and the one it left.

    rows by sequence, safety checkpoints apart → a checkpoint grew from its parent; a restore began
    at its safety checkpoint, or, for some paths only, at what HEAD was

Guarantee: every checkpoint that the catalog has is a step or stands before one; nothing is loaded
but rows, so a damaged content does not keep anybody from stepping past it.
Not guaranteed: what a restore of some paths replaced beyond what HEAD knew; only its safety
checkpoint has that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.engine.restore.records import restored_in_part
from holdfast.engine.vault import Vault


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One action: `checkpoint` is the state after it, `before` what it is compared with. Steps
    count from 0. `first_message` is the index of the first message that is new with it."""

    index: int
    action: OperationKind
    checkpoint: Checkpoint
    before: Checkpoint | None
    first_message: int = 0


def recorded_steps(
    vault: Vault, session_id: SessionId, *, also: CheckpointId | None = None
) -> tuple[ReplayStep, ...]:
    """Oldest first; with the safety checkpoint `also`, if it is one."""
    rows = list(vault.catalog.history(session_id, records=True))[::-1]
    by_id = {row.id: row for row in rows}
    operations = vault.catalog.operations(session_id, kinds=RESTORING_KINDS)
    made = {operation.checkpoint: operation for operation in operations}
    steps: list[ReplayStep] = []
    next_message = 0
    for row in rows:
        if row.kind is Kind.SAFETY and row.id != also:
            continue
        operation = made.get(row.id)
        action = operation.kind if operation is not None else _action_of(row)
        before = _before(row, operation, by_id)
        steps.append(ReplayStep(len(steps), action, row, before, next_message))
        if row.message_index is not None:
            next_message = max(next_message, row.message_index + 1)
    return tuple(steps)


def _action_of(row: Checkpoint) -> OperationKind:
    """For rows whose entry in the log is not there: it may have been imported without."""
    return OperationKind.RESTORE if row.kind is Kind.RESTORE else OperationKind.CHECKPOINT


def _before(
    row: Checkpoint, operation: Operation | None, by_id: Mapping[CheckpointId, Checkpoint]
) -> Checkpoint | None:
    candidates = [row.parent]
    if operation is not None:
        candidates = [operation.safety, operation.head_before, row.parent]
        if restored_in_part(row):
            candidates = candidates[1:]
    return next((by_id[one] for one in candidates if one is not None and one in by_id), None)
