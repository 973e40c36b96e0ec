"""The states of the workspace in the order in which they were seen, whichever session saved them.

    the log, newest first: a save is a state; a restore is two, what it found and what it made

A checkpoint that an edit kept of some files is no state of the workspace, and is left out. So are
imported ones, which the log does not have: of those the parent is what came before.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import CheckpointId
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.restore.selections import selection_of
from holdfast.engine.history.head import MOVING_KINDS
from holdfast.engine.vault import Vault

_CHUNK = 200


class WorkspaceStates:
    """Tells what came before a checkpoint; the log is read as far as somebody asks."""

    def __init__(self, vault: Vault) -> None:
        self._catalog = vault.catalog
        self._states = self._newest_first()
        self._seen: list[Checkpoint] = []
        self._places: dict[CheckpointId, int] = {}

    def newest(self) -> Checkpoint | None:
        return self._at(0)

    def before(self, checkpoint: Checkpoint) -> Checkpoint | None:
        """What the workspace held before it; before a restore, what that restored."""
        target = checkpoint.restores_from if checkpoint.kind is Kind.RESTORE else None
        if target is not None and selection_of(checkpoint) is None:
            return self._catalog.checkpoint(None, target)
        while checkpoint.id not in self._places:
            if self._at(len(self._seen)) is None:
                parent = checkpoint.parent
                return None if parent is None else self._catalog.checkpoint(None, parent)
        return self._at(self._places[checkpoint.id] + 1)

    def _at(self, place: int) -> Checkpoint | None:
        while len(self._seen) <= place:
            state = next(self._states, None)
            if state is None:
                return None
            self._places.setdefault(state.id, len(self._seen))
            self._seen.append(state)
        return self._seen[place]

    def _newest_first(self) -> Iterator[Checkpoint]:
        before: int | None = None
        while chunk := self._catalog.operations_before(before, _CHUNK, kinds=MOVING_KINDS):
            for operation in chunk:
                yield from self._states_of(operation)
            before = chunk[-1].sequence

    def _states_of(self, operation: Operation) -> Iterator[Checkpoint]:
        made = operation.checkpoint and self._catalog.checkpoint(None, operation.checkpoint)
        if made and (
            operation.kind is not OperationKind.CHECKPOINT or made.kind is not Kind.SAFETY
        ):
            yield made
        safety = operation.safety and self._catalog.checkpoint(None, operation.safety)
        if safety:
            yield safety
