"""What `undo` and `redo` of the workspace mean: one line of states over all sessions.

    walk the log, oldest first, with `past` (states that led here) and `future` (what was undone):
      a save           another tree than the last state: a new state, and the future ends;
                       the same tree: one more checkpoint of that state, nothing happened
      a restore, reset a new state, also where no byte changed, and the future ends
      an undo          the states above its target move from `past` to `future`, as one group
      a redo           the newest group moves back

    undo: the newest state that the workspace is not in already. Something unsaved: the last state.
    Otherwise the one before it. Directly after a restore that changed nothing: that restore.
    turn: the newest such state in which somebody sent a message.
    redo: the newest group, as a whole.

States are trees, so nothing here depends on which session or person made a change. A save that
follows a restore of some paths is taken for the outcome of it: the log does not have that tree.
Deleted checkpoints drop out; an undo whose target is not in the log counts as a restore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, Digest
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.selections import selection_of


@dataclass(frozen=True, slots=True)
class Moment:
    """An entry of the log with the checkpoint that it made."""

    operation: Operation
    made: Checkpoint


@dataclass(slots=True)
class State:
    """What the workspace held for a while. `tree` is None after a restore of some paths, until a
    save tells. `restored` is the restore that led to it, `checkpoints` all that hold it, oldest
    first, `also` ids of others that do."""

    tree: Digest | None
    since: Operation
    checkpoints: list[Checkpoint]
    restored: Operation | None = None
    also: set[CheckpointId] = field(default_factory=set)

    def holds(self, checkpoint_id: CheckpointId | None) -> bool:
        return checkpoint_id in self.also or any(c.id == checkpoint_id for c in self.checkpoints)

    @property
    def newest_checkpoint(self) -> Checkpoint:
        """The one to restore: records of restores only where nothing else has the state."""
        ordinary = [one for one in self.checkpoints if not one.kind.is_record]
        return (ordinary or self.checkpoints)[-1]


@dataclass(frozen=True, slots=True)
class Undone:
    """What one undo moved out of the way."""

    undo: Operation
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What an undo takes back: everything from `before` to the present. `after` is the state that
    followed `before`, None when nothing was saved since."""

    before: State
    after: State | None
    changes_nothing: bool = False


class UndoHistory:
    """The walk over the log; oldest entry first."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        self.past: list[State] = []
        self.future: list[Undone] = []
        for moment in moments:
            self._add(moment)

    def step(self, present: Digest, differs: Callable[[Digest, Digest], bool]) -> Step | None:
        """The last thing that happened; None when the workspace never held anything else."""
        if self._is_idle_restore(present, differs):
            return Step(self.past[-2], self.past[-1], changes_nothing=True)
        return self._newest_other(present, differs, lambda state: True)

    def turn(
        self,
        present: Digest,
        differs: Callable[[Digest, Digest], bool],
        boundaries: Set[CheckpointId],
    ) -> Step | None:
        """Everything since the newest message after which something changed."""
        return self._newest_other(
            present, differs, lambda state: any(state.holds(one) for one in boundaries)
        )

    def _newest_other(
        self,
        present: Digest,
        differs: Callable[[Digest, Digest], bool],
        wanted: Callable[[State], bool],
    ) -> Step | None:
        for place in range(len(self.past) - 1, -1, -1):
            state = self.past[place]
            if state.tree is None or not wanted(state):
                continue
            if state.tree != present and differs(state.tree, present):
                after = self.past[place + 1] if place + 1 < len(self.past) else None
                return Step(state, after)
        return None

    def _is_idle_restore(self, present: Digest, differs: Callable[[Digest, Digest], bool]) -> bool:
        """Whether the last thing that happened is a restore that changed nothing."""
        if len(self.past) < 2 or self.past[-1].restored is None:
            return False
        last, before = self.past[-1].tree, self.past[-2].tree
        if before is None or last not in (None, before):
            return False
        return before == present or not differs(before, present)

    def _add(self, moment: Moment) -> None:
        kind = moment.operation.kind
        if kind is OperationKind.CHECKPOINT:
            self._saved(moment)
            return
        if kind is OperationKind.UNDO and self._undone(moment):
            return
        if kind is OperationKind.REDO and self._redone(moment):
            return
        self._restored(moment)

    def _saved(self, moment: Moment) -> None:
        top = self.past[-1] if self.past else None
        if top is not None and top.tree in (None, moment.made.tree):
            top.tree = moment.made.tree
            top.checkpoints.append(moment.made)
            return
        self.past.append(State(moment.made.tree, moment.operation, [moment.made]))
        self.future.clear()

    def _restored(self, moment: Moment) -> None:
        made = moment.made
        tree = made.tree if selection_of(made) is None else None
        also = {made.restores_from} if tree is not None and made.restores_from else set()
        self.past.append(State(tree, moment.operation, [made], moment.operation, also))
        self.future.clear()

    def _undone(self, moment: Moment) -> bool:
        made = moment.made
        if made.kind is not Kind.RESTORE:
            return False
        for place in range(len(self.past) - 1, -1, -1):
            if self.past[place].holds(made.restores_from):
                above = tuple(self.past[place + 1 :])
                del self.past[place + 1 :]
                self.past[place].checkpoints.append(made)
                self.future.append(Undone(moment.operation, above))
                return True
        return False

    def _redone(self, moment: Moment) -> bool:
        if not self.future or self.future[-1].undo.sequence != moment.operation.reverses:
            return False
        group = self.future.pop()
        self.past += group.states
        self.past[-1].checkpoints.append(moment.made)
        return True
