"""How `undo` and `redo` of the workspace work: one line of states across all sessions.

    walk the log, oldest first, with `past` (states that led here) and `future` (undone states):
      a save           different content: a new state, and the future ends, unless it is the safety
                       checkpoint of a redo, or of an undo and only has more files;
                       same content: one more checkpoint of that state, unless files outside the
                       workspace that a tool named have changed
      a restore, reset a new state, even if no byte changed, and the future ends; one that was
                       rolled back after a crash does not count
      an undo          the states above its target move from `past` to `future`, as one group
      a redo           the newest group moves back

    undo: the newest state that differs from the workspace. With unsaved changes: the last state.
    Otherwise the one before it. Directly after a restore that changed no file: that restore.
    turn: the newest such state in which a message was sent.
    redo: the newest group, as a whole.

The end of a long log is usually enough. The walk starts at a point that begins a new state
regardless of earlier entries, with nothing to redo (`first_certain`). If an answer depends on
earlier entries, `EarlierNeeded` is raised.

States are trees, so nothing here depends on which session or person made a change. A restore's
safety checkpoint is scanned with the ignore rules of both sides, so it may contain more than the
workspace's state. An undo to a state that is not in the log counts as a restore.

The content of a deleted checkpoint is unknown. If the states on its two sides differ, there may
have been more than one step in between. Such a step is `uncertain`, and redo does not cross it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from enum import Enum

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, Digest
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.restore.selections import selection_of
from holdfast.values.classes import dataclass, field


@dataclass(frozen=True, slots=True)
class Moment:
    """A log entry with the checkpoint it made. `changed_outside`: a tool call before it changed
    files outside the workspace. `gap_before`: checkpoints between the previous moment and this one
    were deleted."""

    operation: Operation
    made: Checkpoint
    changed_outside: bool = False
    gap_before: bool = False


@dataclass(slots=True)
class State:
    """One state of the workspace. `restored` is the restore that led to it, and `redone` the last
    redo of that restore alone. `checkpoints` hold it, oldest first, and `also` has the ids of
    others that do. `gap_before`: checkpoints between the
    previous state and this one were deleted."""

    tree: Digest
    since: Operation
    checkpoints: list[Checkpoint]
    restored: Operation | None = None
    redone: Operation | None = None
    also: set[CheckpointId] = field(default_factory=set)
    gap_before: bool = False

    def holds(self, checkpoint_id: CheckpointId | None) -> bool:
        return checkpoint_id in self.also or any(c.id == checkpoint_id for c in self.checkpoints)

    @property
    def newest_checkpoint(self) -> Checkpoint:
        """The checkpoint to restore; a restore record only if there is no other."""
        ordinary = [one for one in self.checkpoints if not one.kind.is_record]
        return (ordinary or self.checkpoints)[-1]


@dataclass(frozen=True, slots=True)
class Undone:
    """The states that one undo reverted."""

    undo: Operation
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One undo: it reverts everything from `before` to the present. `after` is the state that
    followed `before`, None if nothing was saved since. `uncertain`: checkpoints in between were
    deleted, so there may have been several steps."""

    before: State
    after: State | None
    uncertain: bool = False


class Difference(Enum):
    """The difference between two trees; times do not count."""

    NONE = "none"
    MORE = "more"
    OTHER = "other"


Compare = Callable[[Digest, Digest], Difference]


class EarlierNeeded(Exception):
    """The answer depends on moments before the start of the walk."""


def first_certain(moments: Sequence[Moment], compare: Compare) -> int | None:
    """The index of the first moment from which a walk gives the same result as over the whole log,
    or None. Its content differs from the moment before it. It is a restore, or an ordinary save
    after a save, so that the state before it is known."""
    for place in range(1, len(moments)):
        before, one = moments[place - 1], moments[place]
        if before.made.tree == one.made.tree:
            continue
        if one.operation.kind in (OperationKind.RESTORE, OperationKind.RESET):
            return place
        saves = {before.operation.kind, one.operation.kind} == {OperationKind.CHECKPOINT}
        if not saves or one.made.kind is Kind.SAFETY:
            continue
        if compare(before.made.tree, one.made.tree) is not Difference.NONE:
            return place
    return None


def _unchanged(state: State) -> bool:
    return False


def _other(old: Digest, new: Digest) -> Difference:
    return Difference.OTHER


class UndoHistory:
    """The walk over the log, oldest entry first. `compare` is called for saves after an undo.
    Without the `whole` log, anything may raise `EarlierNeeded`. `gap_at_end`: checkpoints after the
    last moment were deleted."""

    def __init__(
        self,
        moments: Iterable[Moment],
        compare: Compare = _other,
        *,
        whole: bool = True,
        gap_at_end: bool = False,
    ) -> None:
        self._whole = whole
        self._gap_at_end = gap_at_end
        self.past: list[State] = []
        self.future: list[Undone] = []
        self._compare = compare
        self._future_before_safety: list[Undone] = []
        self._safety_has_more = False
        for moment in moments:
            if moment.gap_before and moment.operation.kind is not OperationKind.REDO:
                self._end_future()  # a redo names the undo that it reverses
            self._add(moment)
        if gap_at_end:
            self._end_future()

    @property
    def lacks_beginning(self) -> bool:
        """Whether checkpoints before the first state were deleted."""
        return self.past[0].gap_before if self.past else self._gap_at_end

    @property
    def redoable(self) -> list[Undone]:
        """The steps to redo, the next one last. The safety checkpoint of a redo does not end it."""
        return self.future or self._future_before_safety

    def states_from(self, state: State) -> list[State]:
        """This state and all that followed, oldest first."""
        place = next(n for n, one in enumerate(self.past) if one is state)
        return self.past[place:]

    def checkpoints_since(self, state: State) -> Iterator[Checkpoint]:
        """From the checkpoint that would be restored, oldest first."""
        later = [one for after in self.states_from(state)[1:] for one in after.checkpoints]
        first = state.checkpoints.index(state.newest_checkpoint)
        yield from (*state.checkpoints[first:], *later)

    def step(
        self,
        present: Digest,
        differs: Callable[[Digest, Digest], bool],
        differs_outside: Callable[[State], bool] = _unchanged,
    ) -> Step | None:
        """The last step; None if the workspace never had another state. `differs_outside` says
        whether tool calls since a state have changed files elsewhere."""
        after: State | None = None
        for place in range(len(self.past) - 1, -1, -1):
            state = self.past[place]
            differs_here = state.tree != present and differs(state.tree, present)
            if differs_here or differs_outside(state):
                return Step(state, after, self._gap_after(after))
            if place and state.restored is not None:
                return Step(self.past[place - 1], state, state.gap_before)
            after = state
        self._need_whole()
        return None

    def turn(
        self,
        present: Digest,
        differs: Callable[[Digest, Digest], bool],
        boundaries: Set[CheckpointId],
        differs_outside: Callable[[State], bool] = _unchanged,
    ) -> Step | None:
        """Everything since the newest message after which something changed."""
        after: State | None = None
        uncertain = False
        for state in reversed(self.past):
            uncertain = uncertain or self._gap_after(after)
            is_boundary = any(one.id in boundaries for one in state.checkpoints)
            differs_here = is_boundary and state.tree != present and differs(state.tree, present)
            if differs_here or (is_boundary and differs_outside(state)):
                return Step(state, after, uncertain)
            after = state
        self._need_whole()
        return None

    def _gap_after(self, after: State | None) -> bool:
        return self._gap_at_end if after is None else after.gap_before

    def _end_future(self) -> None:
        self.future, self._future_before_safety = [], []

    def _need_whole(self) -> None:
        if not self._whole:
            raise EarlierNeeded

    def _add(self, moment: Moment) -> None:
        kind = moment.operation.kind
        if kind is OperationKind.CHECKPOINT:
            self._saved(moment)
            return
        if kind is OperationKind.UNDO and self._undone(moment):
            return
        if kind is OperationKind.REDO and self._redone(moment):
            return
        if self._is_rolled_back(moment):
            return
        self._restored(moment)

    def _saved(self, moment: Moment) -> None:
        top = self.past[-1] if self.past else None
        made = moment.made
        if top is not None and top.tree == made.tree and not moment.changed_outside:
            top.checkpoints.append(made)
            return
        found = Difference.OTHER
        if top is not None and self.redoable and not moment.changed_outside:
            found = self._compare(top.tree, made.tree)
            if found is Difference.NONE:
                top.checkpoints.append(made)
                return
        state = State(made.tree, moment.operation, [made], gap_before=moment.gap_before)
        self.past.append(state)
        self._future_before_safety = self.redoable if made.kind is Kind.SAFETY else []
        self._safety_has_more = found is Difference.MORE
        self.future = []

    def _is_rolled_back(self, moment: Moment) -> bool:
        """An unfinished restore that was rolled back leads to its own safety checkpoint."""
        saved = moment.operation.safety
        back = saved is not None and saved == moment.made.restores_from
        return back and bool(self.past) and self.past[-1].tree == moment.made.tree

    def _restored(self, moment: Moment) -> None:
        made = moment.made
        whole = selection_of(made) is None
        also = {made.restores_from} if whole and made.restores_from else set()
        restored = moment.operation
        state = State(
            made.tree, restored, [made], restored, also=also, gap_before=moment.gap_before
        )
        self.past.append(state)
        self._end_future()

    def _undone(self, moment: Moment) -> bool:
        made = moment.made
        if made.kind is not Kind.RESTORE:
            return False
        place = self._place_of(moment)
        if place is None:
            return False
        above = tuple(self.past[place + 1 :])
        del self.past[place + 1 :]
        self.past[place].checkpoints.append(made)
        if self._safety_has_more:
            self.future = self.redoable
        self.future = [*self.future, Undone(moment.operation, above)]
        self._future_before_safety = []
        return True

    def _place_of(self, undo: Moment) -> int | None:
        """The index of the state that an undo led to. That is the state before the operation it
        reverses. Otherwise it is the newest with its target or, if that was deleted, with its
        tree."""
        target, tree = undo.made.restores_from, undo.made.tree
        places = range(len(self.past) - 1, -1, -1)
        for place in places[1:]:
            if self.past[place + 1].since.sequence == undo.operation.reverses:
                before = self.past[place]
                if before.tree == tree or before.holds(target):
                    return place
                break
        else:
            if undo.operation.reverses is not None:
                self._need_whole()
        for place in places:
            if target is not None and self.past[place].holds(target):
                return place
        self._need_whole()
        return next((place for place in places if self.past[place].tree == tree), None)

    def _forget_undo(self, undo: Operation) -> None:
        """Remove an undo's record, as if it had not happened."""
        top = self.past[-1]
        left = [one for one in top.checkpoints if one.id != undo.checkpoint]
        if left and len(left) < len(top.checkpoints) and undo.checkpoint is not None:
            top.checkpoints = left
            top.also.add(undo.checkpoint)

    def _redone(self, moment: Moment) -> bool:
        redoable = self.redoable
        if not redoable or redoable[-1].undo.sequence != moment.operation.reverses:
            return False
        if not self.future:  # the workspace had changed since the undo, so this counts as a restore
            self._restored(moment)
            self.future = redoable[:-1]
            return True
        undone = self.future.pop()
        self._forget_undo(undone.undo)
        self.past += undone.states
        self.past[-1].checkpoints.append(moment.made)
        if len(undone.states) == 1:
            self.past[-1].redone = moment.operation
        return True
