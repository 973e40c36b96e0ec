"""The recorded actions of a session in order, each with the state it led to and the one it left.

    milestones by sequence, safety checkpoints apart → a step is read when somebody stands on it: a
    checkpoint grew from its parent; a restore began at its safety checkpoint, or, for some paths
    only, at what HEAD was

Guarantee: every checkpoint that the catalog has is a step or stands before one; nothing is loaded
but rows, and of those only the ones that are looked at, so damage does not keep anybody from
stepping past it, and a long session is opened as quickly as a short one.
Not guaranteed: what a restore of some paths replaced beyond what HEAD knew; only its safety
checkpoint has that. That a step is still there when it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import overload

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import NotFound
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.engine.vault import Vault

_KEPT_ROWS = 256
"""A walk meets each row twice: as a step, and as what the next one began with."""


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One action: `checkpoint` is the state after it, `before` what it is compared with. Steps
    count from 0. `first_message` is the index of the first message that is new with it."""

    index: int
    action: OperationKind
    checkpoint: Checkpoint
    before: Checkpoint | None
    first_message: int = 0


class RecordedSteps(Sequence[ReplayStep]):
    """Oldest first; with the safety checkpoint `also`, if it is one. Each is read when it is asked
    for: `NotFound` when it was deleted since, `StoreDamaged` when its row cannot be read."""

    def __init__(
        self, vault: Vault, session_id: SessionId, *, also: CheckpointId | None = None
    ) -> None:
        found = [
            milestone
            for milestone in vault.catalog.milestones(session_id)
            if milestone.kind is not Kind.SAFETY or milestone.id == also
        ]
        self._ids = [milestone.id for milestone in found]
        known = (-1 if m.message_index is None else m.message_index for m in found)
        self._first_messages = list(accumulate((n + 1 for n in known), max, initial=0))
        operations = vault.catalog.operations(session_id, kinds=RESTORING_KINDS)
        self._made = {operation.checkpoint: operation for operation in operations}

        @lru_cache(maxsize=_KEPT_ROWS)
        def row(checkpoint_id: CheckpointId) -> Checkpoint | None:
            return vault.catalog.checkpoint(session_id, checkpoint_id)

        self._row = row

    def place_of(self, checkpoint_id: CheckpointId) -> int:
        """The index of its step; `ValueError` if it is none."""
        return self._ids.index(checkpoint_id)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[ReplayStep]:
        return (self._step(index) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> ReplayStep: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ReplayStep]: ...

    def __getitem__(self, index: int | slice) -> ReplayStep | Sequence[ReplayStep]:
        wanted = range(len(self))[index]
        return self._step(wanted) if isinstance(wanted, int) else [*map(self._step, wanted)]

    def _step(self, index: int) -> ReplayStep:
        identifier = self._ids[index]
        row = self._row(identifier)
        if row is None:
            raise NotFound(f"the checkpoint {identifier} is not there any more")
        operation = self._made.get(identifier)
        action = operation.kind if operation is not None else _action_of(row)
        before = self._before(row, operation)
        return ReplayStep(index, action, row, before, self._first_messages[index])

    def _before(self, row: Checkpoint, operation: Operation | None) -> Checkpoint | None:
        candidates = [row.parent]
        if operation is not None:
            candidates = [operation.safety, operation.head_before, row.parent]
        found = (self._row(one) for one in candidates if one is not None)
        return next((one for one in found if one is not None), None)


def _action_of(row: Checkpoint) -> OperationKind:
    """For rows whose entry in the log is not there: it may have been imported without."""
    return OperationKind.RESTORE if row.kind is Kind.RESTORE else OperationKind.CHECKPOINT
