"""Undo and redo: of a session's restores, for programs, and of the last change, for people.

A program's undo reverts the last restore of its session. A person's undo reverts the last change to
the workspace, no matter who made it; `holdfast.domain.timeline.undo_history` determines which. Both
are restores themselves, and save the current state first.

An undo is recorded in the session whose checkpoint it goes back to. So that session's conversation
follows it, its agent gets the notice for its own work, and every other session the notice for
another session's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import NothingToUndo, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.operations import Operation, OperationKind, undo_lists
from holdfast.domain.restore.selections import selection_of
from holdfast.domain.timeline.undo_history import (
    Difference,
    EarlierNeeded,
    Moment,
    State,
    Step,
    UndoHistory,
    first_certain,
)
from holdfast.domain.trees.changes import tree_changes
from holdfast.engine.components.selection import changed_components, choose_components
from holdfast.engine.history.history import MOVING_KINDS
from holdfast.engine.restore.first_captured import first_captured, with_goal
from holdfast.engine.restore.records import RestoreRequest, Seen
from holdfast.engine.retention.protection import states_before_messages
from holdfast.engine.scan.scanner import RulesOf, Scan
from holdfast.engine.stored_objects import loader_for
from holdfast.engine.undo.causes import (
    Authors,
    Cause,
    Loss,
    are_overlapping_edits,
    authors_since,
    loss_since,
    tool_calls_after,
)
from holdfast.engine.undo.outside_files import (
    EXTERNAL,
    CallsInProgress,
    OutsideChanges,
    OutsideStep,
    changed_between,
    keys_outside,
)
from holdfast.engine.vault import Vault
from holdfast.values.classes import dataclass, replace

T = TypeVar("T")
MOST_STATES = 5_000
"""How far back undo looks; what is older is restored by name or id."""
_PAGES = (30, 300, 2 * MOST_STATES)
"""How many entries of the log are read before more of them are: mostly the newest say it all."""
_HINT = "see what was done: holdfast log --records"
_NO_CHECKPOINT_HINT = (
    'to create one: holdfast checkpoint "why"; whether something prevents that: holdfast status'
)


@dataclass(frozen=True, slots=True)
class UndoStep:
    """The restore that undoes the last thing, and that thing. `causes` are the tool calls that may
    have done it, the newest of each session; `undone` is the restore that it was, if it was one.
    `saved` is the checkpoint that has it, None if none does. `since` is the checkpoint after which
    it happened, by which people know that state best. `steps` of undo lead back from a redo.
    `stays` says which files outside the workspace it changed and cannot bring back, and why.
    `loss` is what was deleted later, and no undo brings back. `authors` made the changes of a
    turn. `overlapping`: all the calls did it, at the same time."""

    request: RestoreRequest
    causes: tuple[Cause, ...] = ()
    undone: Operation | None = None
    saved: Checkpoint | None = None
    turn: bool = False
    since: Checkpoint | None = None
    steps: int = 1
    stays: tuple[str, ...] = ()
    loss: Loss | None = None
    authors: Authors = Authors()
    overlapping: bool = False

    @property
    def at(self) -> datetime | None:
        """When it happened, as far as that is known."""
        at_ns = None
        if self.undone is not None:
            at_ns = self.undone.at_ns
        elif self.causes:
            at_ns = self.causes[0].at_ns
        elif self.saved is not None:
            at_ns = self.saved.created_at_ns
        return None if at_ns is None else datetime.fromtimestamp(at_ns / 1e9, tz=UTC)


def undo_request(vault: Vault, session_id: SessionId) -> RestoreRequest:
    """The restore that reverts the newest restore (or redo) of the session."""
    undoable = undo_lists(vault.catalog.operations(session_id)).undoable
    if not undoable:
        raise NothingToUndo("Nothing to undo: this session has no restore", hint=_HINT)
    return _reversal(vault, undoable[-1], OperationKind.UNDO)


def redo_request(vault: Vault, session_id: SessionId) -> RestoreRequest:
    """The restore that reverts the newest undo."""
    redoable = undo_lists(vault.catalog.operations(session_id)).redoable
    if not redoable:
        raise NothingToUndo("Nothing to redo: nothing was undone in this session", hint=_HINT)
    return _reversal(vault, redoable[-1], OperationKind.REDO)


Rescan = Callable[[tuple[Digest, ...], RulesOf | None], Scan]
"""The workspace as it is now; trees and rules say what to look at besides."""


def last_step(vault: Vault, scan: Scan, rescan: Rescan, *, turn: bool = False) -> UndoStep:
    """What a person's undo reverts now: the last thing, or everything since the last message."""
    return _from_history(vault, lambda history: _last_step(vault, history, scan, rescan, turn=turn))


def _last_step(
    vault: Vault, history: UndoHistory, scan: Scan, rescan: Rescan, *, turn: bool
) -> UndoStep:
    outside = _Outside(vault, history)
    load = loader_for(vault, scan)

    def differs(old: Digest, new: Digest) -> bool:
        try:
            differences = 0
            for change in tree_changes(load, old, new):
                if change.old is not None and change.new is not None:
                    return True
                differences += 1
            if not differences:
                return False
            # Perhaps rules alone make the difference: a safety checkpoint has what is ignored now.
            # Of several states with one tree the newest: each left out other things.
            state = next(one for one in reversed(history.past) if one.tree == old)
            target = state.newest_checkpoint
            added = first_captured(vault, target, history.checkpoints_since(state))
            request = RestoreRequest(target.session_id, target, added=added)
            from holdfast.engine.restore.plan import make_plan

            plan = make_plan(vault, *with_goal(vault, rescan((old,), request.rules_of), request))
            return bool(plan.steps or plan.blocked)
        except StoreDamaged:
            return True  # and the plan says what is wrong

    def differs_outside(state: State) -> bool:
        found = outside.step(state)
        return found.mode is not None or bool(found.blocked)

    if turn:
        messages = _before_messages(vault, history)
        step = history.turn(scan.tree, differs, messages, differs_outside)
        if not messages:
            raise NothingToUndo(
                "No message to an agent is recorded here, so there is no turn to undo",
                hint="undo the last change: holdfast undo; or choose a checkpoint: holdfast log",
            )
    else:
        step = history.step(scan.tree, differs, differs_outside)
    if step is None and not history.past:
        why = "every checkpoint was deleted" if history.lacks_beginning else "no checkpoint yet"
        raise NothingToUndo(f"Nothing to undo: {why}", hint=_NO_CHECKPOINT_HINT)
    if step is None and history.lacks_beginning:
        raise _states_deleted()
    if step is None:
        what = "no message was followed by a change" if turn else "nothing has changed"
        raise NothingToUndo(
            f"Nothing to undo: {what} since the first checkpoint",
            hint="list checkpoints: holdfast log",
        )
    found = _undo_step(vault, outside, step, scan, turn=turn)
    newest = history.past[-1]
    if turn:
        authors = Authors()
        with suppress(StoreDamaged):  # and the plan says what is wrong
            authors = authors_since(vault, history.states_from(step.before), scan.tree, load)
        return replace(found, authors=authors)
    if step.before is newest:
        return found
    return replace(found, loss=loss_since(vault, newest))


def last_loss(vault: Vault) -> Loss | None:
    """What the last tool calls deleted that no checkpoint has; asked where there is nothing to
    undo, so that the workspace is in the newest state."""
    return _from_history(
        vault, lambda history: loss_since(vault, history.past[-1]) if history.past else None
    )


def next_step(vault: Vault) -> UndoStep:
    """What a person's redo brings back: what the last undo took."""
    return _from_history(vault, lambda history: _next_step(vault, history))


def _next_step(vault: Vault, history: UndoHistory) -> UndoStep:
    if not history.redoable:
        raise NothingToUndo(
            "Nothing to redo: nothing was undone, or the workspace has changed since", hint=_HINT
        )
    group = history.redoable[-1]
    undo = group.undo
    request = _reversal(vault, undo, OperationKind.REDO)
    seen = Seen(_newest_sequence(vault), history.past[-1].tree)
    return UndoStep(replace(request, seen=seen), undone=undo, steps=len(group.states))


def _undo_step(vault: Vault, outside: _Outside, step: Step, scan: Scan, *, turn: bool) -> UndoStep:
    seen = Seen(_newest_sequence(vault), scan.tree)
    undone = None if turn or step.after is None else step.after.restored
    if undone is not None:
        # Without what was saved before it, the state before it is what there is to go back to.
        with suppress(NothingToUndo):
            request = _reversal(vault, undone, OperationKind.UNDO)
            return UndoStep(replace(request, seen=seen), undone=undone)
    if step.uncertain:
        raise _states_deleted()
    target = _target(vault, step.before)
    found = outside.step(step.before)
    components = choose_components(vault, target)
    if found.mode is not None and target is step.before.newest_checkpoint:
        components = tuple(sorted((*components, (EXTERNAL, found.mode))))
    request = RestoreRequest(
        target.session_id,
        target,
        added=first_captured(vault, target, outside.since(step.before)),
        kind=OperationKind.UNDO,
        reverses=None if step.after is None else step.after.since.sequence,
        components=components,
        seen=seen,
    )
    if undone is not None:
        return UndoStep(request, undone=undone)
    saved = None if step.after is None else step.after.checkpoints[0]
    causes = () if turn else tool_calls_after(vault, step.before, saved)
    since = step.before.checkpoints[0] if target.kind.is_record else target
    if turn:
        messages = [one for one in step.before.checkpoints if one.kind is Kind.MESSAGE]
        since = messages[-1] if messages else since
    unknown = (f"{line}: it is not known who changed it since the call" for line in found.unknown)
    stays = (*found.blocked, *unknown)
    overlapping = step.after is not None and are_overlapping_edits(
        vault, causes, step.before, step.after
    )
    return UndoStep(
        request,
        causes,
        saved=saved,
        turn=turn,
        since=since,
        stays=stays,
        overlapping=overlapping,
    )


def _states_deleted() -> NothingToUndo:
    return NothingToUndo(
        "Nothing was undone: the checkpoint before the last change was deleted, so the result "
        "would be uncertain",
        hint="choose a checkpoint to restore: holdfast log --records",
    )


class _Outside:
    """What going back to a state of a history brings back outside."""

    def __init__(self, vault: Vault, history: UndoHistory) -> None:
        self._history = history
        self._changes = OutsideChanges(vault)

    def since(self, state: State) -> Iterator[Checkpoint]:
        return self._history.checkpoints_since(state)

    def step(self, state: State) -> OutsideStep:
        return self._changes.step(state.newest_checkpoint, tuple(self.since(state)))


def _target(vault: Vault, state: State) -> Checkpoint:
    """The checkpoint that a restore record represents to people."""
    found = state.newest_checkpoint
    whole = found.kind is Kind.RESTORE and selection_of(found) is None
    if whole and found.restores_from is not None:
        meant = vault.catalog.checkpoint(found.session_id, found.restores_from)
        if meant is not None and meant.tree == found.tree:
            return meant
    return found


def _from_history(vault: Vault, answer: Callable[[UndoHistory], T]) -> T:
    """The answer that the history gives, of which no more is read than it takes."""

    def compare(old: Digest, new: Digest) -> Difference:
        found = Difference.NONE
        try:
            for change in tree_changes(vault.load_tree, old, new):
                if change.old is not None:
                    return Difference.OTHER
                found = Difference.MORE
        except StoreDamaged:
            return Difference.OTHER
        return found

    for most in _PAGES[:-1]:
        moments, whole, gap = _newest_moments(vault, most)
        start = 0 if whole else first_certain(moments, compare)
        if start is None:
            continue
        with suppress(EarlierNeeded):
            return answer(UndoHistory(moments[start:], compare, whole=whole, gap_at_end=gap))
    moments, _, gap = _newest_moments(vault, _PAGES[-1])
    return answer(UndoHistory(moments, compare, gap_at_end=gap))


def _newest_moments(vault: Vault, most: int) -> tuple[list[Moment], bool, bool]:
    """Oldest first, whether these are all that there are, and whether checkpoints after the last of
    them were deleted."""
    catalog = vault.catalog
    limit = min(most, MOST_STATES)
    rows = {one.id: one for one in catalog.history(None, limit=limit, records=True)}
    log = catalog.operations_before(None, most, kinds=MOVING_KINDS)
    found: list[Moment] = []
    calls = CallsInProgress(vault)
    naming: list[Checkpoint] = []  # made before tool calls that reach out and may be in progress
    seen: Checkpoint | None = None  # the last one with what is outside as it was known then
    deleted: set[CheckpointId] = set()  # since the moment before
    for operation in reversed(log):
        made = rows.get(operation.checkpoint) if operation.checkpoint else None
        if made is None and operation.checkpoint and len(rows) == limit < MOST_STATES:
            # Imported ones have no entry of these kinds: the newest rows may be others.
            made = catalog.checkpoint(None, operation.checkpoint)
        if made is None:
            if operation.checkpoint is not None and len(rows) < MOST_STATES:
                deleted.add(operation.checkpoint)
            continue
        if operation.safety is not None:  # it belongs to that restore, which can still be named
            deleted.discard(operation.safety)
        naming = [one for one in naming if calls.includes(one, made)]
        if seen is not None and seen.tree != made.tree and not naming:
            seen = None
        changed = seen is not None and changed_between(vault, seen, made)
        found.append(Moment(operation, made, changed, gap_before=bool(deleted)))
        deleted.clear()
        if keys_outside((made,)):
            naming.append(made)
            seen = made
        elif changed:
            seen = made if naming else None
        elif seen is not None and seen.tree != made.tree:
            seen = made
    return found, len(log) < most, bool(deleted)


def _before_messages(vault: Vault, history: UndoHistory) -> set[CheckpointId]:
    """Checkpoints of states in which a message was sent: made for it, or, where none was made, the
    newest one of its session before it."""
    known = [one for state in history.past for one in state.checkpoints]
    made = {one.id for one in known if one.kind is Kind.MESSAGE}
    answered = set()  # by the checkpoint for the message that came next
    newest: dict[SessionId, Checkpoint] = {}
    for one in (one for one in known if not one.kind.is_record):
        before = newest.get(one.session_id)
        if one.kind is Kind.MESSAGE and before is not None:
            answered.add(before.id)
        newest[one.session_id] = one
    return made | (states_before_messages(vault, known) - answered)


def _newest_sequence(vault: Vault) -> int:
    newest = vault.catalog.newest_operation()
    return newest.sequence if newest is not None else 0


def _reversal(vault: Vault, operation: Operation, kind: OperationKind) -> RestoreRequest:
    """The restore to what was saved before an operation."""
    safety = operation.safety
    target = vault.catalog.checkpoint(operation.session_id, safety)
    if target is None:
        raise NothingToUndo(
            "the safety checkpoint of that restore has been deleted",
            hint="choose a checkpoint yourself: holdfast log --records",
        )
    components = _touched(vault, operation, target)
    request = RestoreRequest(operation.session_id, target, components=components)
    return replace(request, kind=kind, reverses=operation.sequence)


def _touched(vault: Vault, operation: Operation, safety: Checkpoint) -> tuple[tuple[str, str], ...]:
    """Components that the operation has changed: its record says how they were afterwards. What it
    left alone, an undo leaves alone too, whatever has become of it since."""
    record = operation.checkpoint
    made = vault.catalog.checkpoint(operation.session_id, record)
    return () if made is None else changed_components(vault, safety, made)
