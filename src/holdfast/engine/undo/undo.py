"""Undo and redo: of a session's restores, for programs, and of the last change, for people.

A program's undo reverts the last restore of its session. A person's undo reverts the last change to
the workspace, no matter who made it; `holdfast.domain.timeline.undo_history` determines which. Both
are restores themselves, and save the current state first.

An undo is recorded in the session whose checkpoint it returns to. So that session's conversation
follows it, and its agent gets the notice for its own work. Every other session gets the notice for
another session's work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import NothingToUndo, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId, short
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind, undo_lists
from holdfast.domain.paths import to_text, typed
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
from holdfast.domain.trees.changes import TreeLoader, tree_changes
from holdfast.engine.components.selection import changed_components, choose_components
from holdfast.engine.history.history import MOVING_KINDS
from holdfast.engine.restore.backfilled_paths import first_captured, with_goal
from holdfast.engine.restore.records import RestoreRequest, Seen
from holdfast.engine.retention.protection import states_before_messages
from holdfast.engine.scan.scanner import RulesOf, Scan
from holdfast.engine.stored_objects import loader_for
from holdfast.engine.undo.causes import (
    Authors,
    Cause,
    CausesByLog,
    Loss,
    are_overlapping_edits,
    authors_since,
    loss_since,
    tool_calls_after,
)
from holdfast.engine.undo.databases_in_use import DatabasesInUse, named_in
from holdfast.engine.undo.outside_files import (
    EXTERNAL,
    CallsInProgress,
    OutsideChanges,
    OutsideStep,
    changed_between,
    keys_outside,
    without_blocked_outside,
)
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_operations
from holdfast.values.classes import dataclass, replace

T = TypeVar("T")
MOST_STATES = 5_000
"""How far back undo searches; older states are restored by name or id."""
_PAGES = (30, 300, 2 * MOST_STATES)
"""Log entries that are read first; usually the newest are enough."""
_HINT = "see what was done: holdfast log --records"
_NO_CHECKPOINT_HINT = (
    'to create one: holdfast checkpoint "why"; whether something prevents that: holdfast status'
)


@dataclass(frozen=True, slots=True)
class UndoStep:
    """The restore that undoes the last change, and a description of that change. `causes` are the
    tool calls that may have made it, the newest of each session; `undone` is set if it was a
    restore. `saved` is the checkpoint that has it, None if none does. `since` is the checkpoint
    after which it happened, by its best-known name. `steps` is how many undos revert a redo.
    `stays` lists changed files outside the workspace that cannot be restored, and why. `loss` are
    later deletions that no undo restores. `authors` made the changes of a turn. `overlapping`: all
    the calls made it, at the same time."""

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
        """When it happened, if known."""
        at_ns = None
        if self.undone is not None:
            at_ns = self.undone.at_ns
        elif self.causes:
            at_ns = self.causes[0].at_ns
        elif self.saved is not None:
            at_ns = self.saved.created_at_ns
        return None if at_ns is None else datetime.fromtimestamp(at_ns / 1e9, tz=UTC)


def undo_request(
    vault: Vault, session_id: SessionId, elsewhere: Collection[CheckpointId] = ()
) -> RestoreRequest:
    """The restore that reverts the session's newest restore (or redo). `elsewhere` are records of
    the session's restores to checkpoints of other sessions, where they were recorded."""
    undoable = undo_lists(_operations(vault, session_id, elsewhere)).undoable
    if not undoable:
        raise NothingToUndo("Nothing to undo: this session has no restore", hint=_HINT)
    return _reversal(vault, undoable[-1], OperationKind.UNDO)


def redo_request(
    vault: Vault, session_id: SessionId, elsewhere: Collection[CheckpointId] = ()
) -> RestoreRequest:
    """The restore that reverts the newest undo."""
    redoable = undo_lists(_operations(vault, session_id, elsewhere)).redoable
    if not redoable:
        raise NothingToUndo("Nothing to redo: nothing was undone in this session", hint=_HINT)
    return _reversal(vault, redoable[-1], OperationKind.REDO)


def _operations(
    vault: Vault, session_id: SessionId, elsewhere: Collection[CheckpointId]
) -> list[Operation]:
    """The session's operations, and those in other sessions that made one of these records, or
    that undid or redid such a restore."""
    log = all_operations(vault.catalog, session_id)
    found = [operation for operation in log if operation.kind in RESTORING_KINDS]
    records = (vault.catalog.checkpoint(None, record) for record in elsewhere)
    for other in {record.session_id for record in records if record is not None}:
        followed: set[int] = set()
        for operation in vault.catalog.operations(other, kinds=RESTORING_KINDS):
            if operation.checkpoint in elsewhere or operation.reverses in followed:
                followed.add(operation.sequence)
                found.append(operation)
    return found


Rescan = Callable[[tuple[Digest, ...], RulesOf | None], Scan]
"""Scans the current workspace; the arguments are required trees and additional rules."""


def last_step(vault: Vault, scan: Scan, rescan: Rescan, *, turn: bool = False) -> UndoStep:
    """What a person's undo reverts now: the last change, or everything since the last message."""
    return _from_history(vault, lambda history: _last_step(vault, history, scan, rescan, turn=turn))


def _last_step(
    vault: Vault, history: UndoHistory, scan: Scan, rescan: Rescan, *, turn: bool
) -> UndoStep:
    outside = _Outside(vault, history)
    load = loader_for(vault, scan)

    compared = _Comparison(vault, history, load, rescan)
    in_use = compared.in_use

    def differs_outside(state: State) -> bool:
        found = outside.step(state)
        # A restore that led here has left the blocked files alone already, and has said so.
        return found.mode is not None or (bool(found.blocked) and not _is_restored(state))

    messages = _before_messages(vault, history) if turn else set()

    def find() -> Step | None:
        if turn:
            return history.turn(scan.tree, compared.differ, messages, differs_outside)
        return history.step(scan.tree, compared.differ, differs_outside)

    step = find()
    if turn and not messages:
        raise NothingToUndo(
            "No message to an agent is recorded here, so there is no turn to undo",
            hint="undo the last change: holdfast undo; or choose a checkpoint: holdfast log",
        )
    if step is None and in_use.passed_over:
        names = sorted(in_use.passed_over)
        in_use.count()  # nothing else has changed
        step = find()
        if step is not None and step.after is None and _is_restored(step.before):
            raise _only_databases(vault, step.before, names)
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
    passed_over = tuple(sorted(in_use.passed_over))
    found = replace(found, request=replace(found.request, passed_over=passed_over))
    if turn:
        authors = Authors()
        with suppress(StoreDamaged):  # the plan reports the problem
            authors = authors_since(vault, history.states_from(step.before), scan.tree, load)
        return replace(found, authors=authors)
    return replace(found, loss=_newest_loss(vault, history.states_from(step.before)[1:]))


def _newest_loss(vault: Vault, states: Sequence[State]) -> Loss | None:
    """The newest one in states that the workspace is still in, except for databases in use. What
    was lost before an undo or a restore does not count."""
    for state in reversed(states):
        found = loss_since(vault, state)
        is_restored = any(one.kind is Kind.RESTORE for one in state.checkpoints)
        if found is not None or is_restored:
            return found
    return None


def _is_restored(state: State) -> bool:
    """Whether nothing was saved since an undo or a restore led to it."""
    return state.checkpoints[-1].kind is Kind.RESTORE


def _only_databases(vault: Vault, state: State, paths: Sequence[bytes]) -> NothingToUndo:
    """No tool call was made since the last restore, so the running program made the change. Undoing
    it would only remove its newest rows, and those after them with the next undo."""
    target = short(_target(vault, state).id)
    names, have = ", ".join(map(to_text, paths)), "has" if len(paths) == 1 else "have"
    return NothingToUndo(
        f"Nothing to undo: since the last restore, only {names} {have} changed, in use by another "
        "program",
        hint=f"to restore that too: holdfast restore {target} {' '.join(map(typed, paths))}",
    )


class _Comparison:
    """Whether states differ from the workspace in more than databases in use and ignore rules."""

    def __init__(
        self, vault: Vault, history: UndoHistory, load: TreeLoader, rescan: Rescan
    ) -> None:
        self._vault = vault
        self._history = history
        self._load = load
        self._rescan = rescan
        self._log: CausesByLog | None = None  # read only if a database in use has changed
        self.in_use = DatabasesInUse(vault)

    def differ(self, old: Digest, new: Digest) -> bool:
        try:
            return self._differ(old, new)
        except StoreDamaged:
            return True  # the plan reports the problem

    def _differ(self, old: Digest, new: Digest) -> bool:
        differences = 0
        passed_over: set[bytes] = set()
        counted: set[bytes] = set()
        for change in tree_changes(self._load, old, new):
            database = self.in_use.owner_of(change.path, change.old, change.new)
            is_whole = change.old is None or change.new is None
            if database is not None and not (is_whole and change.path == database):
                passed_over.add(database)
                continue
            if not is_whole:
                return True
            counted.add(change.path)
            differences += 1
        # Of several states with one tree, use the newest: each left out other files.
        state = next(one for one in reversed(self._history.past) if one.tree == old)
        if passed_over and named_in(self._causes_after(state), passed_over):
            return True
        if differences and self._has_steps(state, counted):
            return True
        self.in_use.passed_over |= passed_over | set(filter(self.in_use.owner_of, counted))
        return False

    def _causes_after(self, state: State) -> tuple[Cause, ...]:
        """The calls that may have made the changes after a state."""
        if self._log is None:
            self._log = CausesByLog(self._vault)
        _, *later = self._history.states_from(state)
        return self._log.between(state, later[0].checkpoints[0] if later else None)

    def _has_steps(self, state: State, counted: Container[bytes]) -> bool:
        """Rules alone may make the difference: a safety checkpoint has files that are ignored
        now. `counted` are files that count even if they are databases in use."""
        from holdfast.engine.restore.plan import make_plan

        target = state.newest_checkpoint
        added = first_captured(self._vault, target, self._history.checkpoints_since(state))
        request = RestoreRequest(target.session_id, target, added=added)
        scan = self._rescan((state.tree,), request.rules_of)
        plan = make_plan(self._vault, *with_goal(self._vault, scan, request))
        paths = [step.path for step in plan.steps] + [one.path for one in plan.blocked]
        left_out = {path for path, _ in added}  # by the state; they existed
        return any(
            self.in_use.owner_of(path) is None or (path in counted and path not in left_out)
            for path in paths
        )


def last_loss(vault: Vault) -> Loss | None:
    """Files without a checkpoint that the last tool calls deleted. Used if there is nothing to
    undo, so the workspace is in the newest state."""
    return _from_history(vault, lambda history: _newest_loss(vault, history.past[-1:]))


def next_step(vault: Vault) -> UndoStep:
    """What a person's redo brings back: what the last undo reverted."""
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
        # After a redo, the state before it may have newer checkpoints than the restore's own
        # safety checkpoint. Without either, go back to the state before the restore.
        for latest in (step.after.redone, undone) if step.after is not None else ():
            with suppress(NothingToUndo):
                if latest is not None:
                    request = _reversal(vault, latest, OperationKind.UNDO)
                    request = replace(request, reverses=undone.sequence, seen=seen)
                    return UndoStep(request, undone=undone)
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
        edited_outside=found.edited,
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
    """The outside part of going back to a state in the history."""

    def __init__(self, vault: Vault, history: UndoHistory) -> None:
        self._history = history
        self._changes = OutsideChanges(vault)

    def since(self, state: State) -> Iterator[Checkpoint]:
        return self._history.checkpoints_since(state)

    def step(self, state: State) -> OutsideStep:
        return self._changes.step(state.newest_checkpoint, tuple(self.since(state)))


def _target(vault: Vault, state: State) -> Checkpoint:
    """The checkpoint that a restore record represents to the user."""
    found = state.newest_checkpoint
    whole = found.kind is Kind.RESTORE and selection_of(found) is None
    if whole and found.restores_from is not None:
        meant = vault.catalog.checkpoint(found.session_id, found.restores_from)
        if meant is not None and meant.tree == found.tree:
            return meant
    return found


def _from_history(vault: Vault, answer: Callable[[UndoHistory], T]) -> T:
    """The answer from the undo history, reading only as much of it as needed."""

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
    """The newest moments, oldest first; whether these are all; and whether checkpoints after the
    last of them were deleted."""
    catalog = vault.catalog
    limit = min(most, MOST_STATES)
    rows = {one.id: one for one in catalog.history(None, limit=limit, records=True)}
    log = catalog.operations_before(None, most, kinds=MOVING_KINDS)
    found: list[Moment] = []
    calls = CallsInProgress(vault)
    naming: list[Checkpoint] = []  # made before tool calls that name outside files
    seen: Checkpoint | None = None  # the last one with the outside files as known then
    deleted: set[CheckpointId] = set()  # since the previous moment
    for operation in reversed(log):
        made = rows.get(operation.checkpoint) if operation.checkpoint else None
        if made is None and operation.checkpoint and len(rows) == limit < MOST_STATES:
            # Imported checkpoints have no such entry, so the newest rows may be others.
            made = catalog.checkpoint(None, operation.checkpoint)
        if made is None:
            if operation.checkpoint is not None and len(rows) < MOST_STATES:
                deleted.add(operation.checkpoint)
            continue
        if operation.safety is not None:  # it belongs to that restore, which can be named instead
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
    """Checkpoints of the states in which messages were sent: made for the message or, if there is
    none, the newest one of its session before it."""
    known = [one for state in history.past for one in state.checkpoints]
    made = {one.id for one in known if one.kind is Kind.MESSAGE}
    answered = set()  # those with a checkpoint for the next message
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
    """The restore to the state saved before an operation."""
    safety = operation.safety
    target = vault.catalog.checkpoint(operation.session_id, safety)
    if target is None:
        raise NothingToUndo(
            "the safety checkpoint of that restore has been deleted",
            hint="choose a checkpoint yourself: holdfast log --records",
        )
    made = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    # Components that it left alone are not undone, whatever happened to them since.
    components = () if made is None else changed_components(vault, target, made)
    request = RestoreRequest(
        operation.session_id, target, components=components, kind=kind, reverses=operation.sequence
    )
    mode = dict(components).get(EXTERNAL)
    return request if mode is None else without_blocked_outside(vault, request, mode, made)
