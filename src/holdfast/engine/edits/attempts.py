"""Attempts that may change the whole workspace: kept on success, rolled back on failure.

    begin: save → recorded as open       keep: settled       put back: restore → settled

The restore's note has the attempt's reason and its failure, so that the history includes failed
attempts. An attempt whose process dies stays open until the user restores its checkpoint or keeps
the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import NotFound, StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent, storable
from holdfast.domain.operations import RESTORING_KINDS, Operation
from holdfast.domain.paths import is_within
from holdfast.domain.restore.selections import Selection, selection_of
from holdfast.domain.story import Activity, ActivityKind, ActivityStatus, NewActivity
from holdfast.engine.edits.open_activities import is_running
from holdfast.engine.stored_objects import entry_at, loader_for
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.engine.engine import Engine
    from holdfast.engine.scan.scanner import Scan

_LONGEST_REASON = 500


def begin_attempt(
    engine: Engine,
    session_id: SessionId,
    reasoning: str,
    *,
    kind: ActivityKind = ActivityKind.ATTEMPT,
    inside: Collection[int] = (),
) -> Activity:
    """The open attempt; the workspace is saved on return. `inside` as in `Engine.save`."""
    vault = engine.vault
    intent = make_intent(reasoning)
    engine = engine.after_waiting(inside)
    with vault.lock.hold():
        saved = engine.save(session_id, intent, kind=Kind.TOOL).checkpoint
        return vault.story.begin(
            NewActivity(
                session_id,
                kind,
                intent.reasoning,
                saved.id,
                vault.clock.now_ns(),
                vault.processes.own_identity(),
                message_index=saved.message_index,
            )
        )


def keep_attempt(vault: Vault, number: int) -> Activity | None:
    return vault.story.settle(number, ActivityStatus.KEPT, at_ns=vault.clock.now_ns())


def roll_back_attempt(engine: Engine, number: int, reason: str) -> Activity | None:
    """Restore the workspace to before the attempt, and record why."""
    from holdfast.engine.edits.guard import open_activity

    vault = engine.vault
    attempt = open_activity(vault, number)
    reason = storable(reason)[:_LONGEST_REASON] or "no reason given"
    request = engine.restore_request(attempt.session_id, attempt.checkpoint)
    tried = attempt.reason[:_LONGEST_REASON]
    engine.restore(replace(request, note=f"attempt failed: {tried}: {reason}"))
    return vault.story.settle(
        number, ActivityStatus.PUT_BACK, at_ns=vault.clock.now_ns(), outcome=reason
    )


def interrupted_activities(vault: Vault, session_id: SessionId | None = None) -> Sequence[Activity]:
    """Open edits and attempts whose process is gone. Those that a restore has rolled back since are
    closed on the way."""
    if not vault.has_story():
        return ()
    left = [a for a in vault.story.open_activities(session_id) if not is_running(vault, a)]
    return [activity for activity in left if not _was_restored(vault, activity)]


def keep_interrupted(vault: Vault, session_id: SessionId) -> Sequence[Activity]:
    """Called when the user decides to keep the work."""
    kept = [
        keep_attempt(vault, activity.number)
        for activity in interrupted_activities(vault, session_id)
    ]
    return [activity for activity in kept if activity is not None]


def paths_to_revert(vault: Vault, scan: Scan, activity: Activity) -> tuple[bytes, ...]:
    """The paths of an edit that its checkpoint can be restored for. Paths that the edit named but
    never created are in neither state."""
    from holdfast.engine.edits.guard import checkpoint_of

    load = loader_for(vault, scan)
    try:
        before = checkpoint_of(vault, activity).tree
        return tuple(
            path
            for path in activity.paths
            if any(entry_at(load, tree, path) is not None for tree in (before, scan.tree))
        )
    except (NotFound, StoreDamaged):
        return activity.paths


def _was_restored(vault: Vault, activity: Activity) -> bool:
    for operation in vault.catalog.operations(activity.session_id, kinds=RESTORING_KINDS):
        if operation.at_ns < activity.started_at_ns or operation.checkpoint is None:
            continue
        record = vault.catalog.checkpoint(activity.session_id, operation.checkpoint)
        if record is None or record.restores_from != activity.checkpoint:
            continue
        if _covers(vault, operation, selection_of(record), activity):
            vault.story.settle(
                activity.number,
                ActivityStatus.PUT_BACK,
                at_ns=vault.clock.now_ns(),
                outcome="its process ended early, and it was rolled back",
            )
            return True
    return False


def _covers(
    vault: Vault, operation: Operation, selected: Selection | None, activity: Activity
) -> bool:
    """Whether a restore reverted all of it: everything for an attempt, and for an edit each of its
    files that existed in either state."""
    if selected is None:
        return True
    if activity.kind is not ActivityKind.EDIT or selected.hunks:
        return False
    left = [p for p in activity.paths if not any(is_within(p, at) for at in selected.paths)]
    if not left or not selected.paths:
        return True
    if operation.safety is None:
        return False
    from holdfast.engine.edits.guard import checkpoint_of

    try:
        trees = [checkpoint_of(vault, activity).tree]
        safety = vault.catalog.checkpoint(activity.session_id, operation.safety)
        trees += [safety.tree] if safety is not None else []
        return not any(entry_at(vault.load_tree, tree, path) for tree in trees for path in left)
    except (NotFound, StoreDamaged):
        return False
