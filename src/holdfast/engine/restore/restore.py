"""Restoring a checkpoint.

    check that the request is still valid → scan and save the current state (safety) → plan
    → execute the plan (`carry_out`) → report git's position

A preview may have been open for minutes while others worked. Meanwhile, the checkpoint may have
been deleted, or the change already undone. Such a restore is refused before it begins.

Saving and planning are repeated if unreadable paths could be made readable, or if a blocking
database transaction has ended; the wait is bounded.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint, SkipReason
from holdfast.domain.errors import (
    Refused,
    RestoreConflict,
    UnknownReference,
)
from holdfast.domain.ids import CheckpointId, short
from holdfast.domain.operations import OperationKind, undo_lists
from holdfast.domain.outcomes import NOTHING_CHANGED, RESTORE_DONE, PathProblem, RestoreOutcome
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import UNDER_WAY, RestorePlan
from holdfast.domain.trees.changes import NewMode
from holdfast.engine.components.component_snapshot import CapturedComponents, capture_components
from holdfast.engine.components.git_drift import git_drift
from holdfast.engine.components.manifests import release_components
from holdfast.engine.components.restore import (
    first_blocked,
    intended_of,
    plan_components,
    with_component_steps,
)
from holdfast.engine.conversation.conversation import follow_restore
from holdfast.engine.history.history import MOVING_KINDS
from holdfast.engine.restore.carry_out import carry_out, note_state
from holdfast.engine.restore.conflicts import amended_tree
from holdfast.engine.restore.database_files import no_transaction
from holdfast.engine.restore.permissions import Unlocked, locked_paths
from holdfast.engine.restore.plan import make_plan
from holdfast.engine.restore.preview import (
    with_databases_in_use,
    with_edits_outside,
    with_unrestored,
)
from holdfast.engine.restore.records import (
    RestoreRequest,
    Seen,
    add_safety,
    save_present,
)
from holdfast.engine.save.workspace_tree import SavedTree
from holdfast.engine.scan.scanner import Scanner
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_operations
from holdfast.values.classes import replace

_MOST_SINCE = 1_000
_WAITS = 5
"""Each takes two seconds at most."""


def revalidate(vault: Vault, request: RestoreRequest) -> RestoreRequest:
    """The request with its current target, because a purge may have changed it. Called with the
    store's lock held."""
    target = request.target
    if request.kind is OperationKind.RESET:
        from holdfast.engine.sessions.approval import require_same_base

        require_same_base(vault, request)
    if request.seen is not None:
        _require_undisturbed(vault, request.seen, request.kind)
    elif request.kind in (OperationKind.UNDO, OperationKind.REDO):
        _require_next(vault, request)
    now = vault.catalog.checkpoint(target.session_id, target.id)
    if now is None:
        raise UnknownReference(
            f"the checkpoint {target.name or short(target.id)} was deleted in the meantime; "
            "nothing was restored",
            hint="list checkpoints: holdfast log",
        )
    return replace(request, target=now)


def _require_undisturbed(vault: Vault, seen: Seen, kind: OperationKind) -> None:
    """An undo concerns the last change. Saves of the same state do not matter."""
    past = "undone" if kind is OperationKind.UNDO else "redone"
    for operation in vault.catalog.operations_after(seen.operation, _MOST_SINCE):
        made = operation.checkpoint and vault.catalog.checkpoint(None, operation.checkpoint)
        saved = operation.kind is OperationKind.CHECKPOINT and made and made.tree == seen.tree
        if operation.kind in MOVING_KINDS and not saved:
            raise Refused(
                f"The workspace changed in the meantime, so nothing was {past}",
                hint="see what changed: holdfast log",
            )


def _require_next(vault: Vault, request: RestoreRequest) -> None:
    lists = undo_lists(all_operations(vault.catalog, request.session_id))
    undone = request.kind is OperationKind.UNDO
    waiting = lists.undoable if undone else lists.redoable
    if not waiting or waiting[-1].sequence != request.reverses:
        raise Refused(
            "another restore, undo or redo ran in the meantime; nothing was "
            + ("undone" if undone else "redone"),
            hint="see what was done: holdfast log --records",
        )


def restore(vault: Vault, scanner: Scanner, request: RestoreRequest) -> RestoreOutcome:
    session = vault.catalog.session(request.session_id)
    head = session.head if session is not None else None
    at_head = vault.catalog.checkpoint(request.session_id, head)
    unlocked = Unlocked(vault)
    outcome: RestoreOutcome | None = None
    try:
        saved, request, plan = save_and_plan(vault, scanner, request, unlocked)
        if plan.blocked and not request.best_effort:
            raise _blocked(plan)
        plan = with_databases_in_use(request, with_unrestored(vault, request, plan))
        identifier = CheckpointId(vault.ids.new_id())
        components = None
        if request.components:
            components = _capture(vault, identifier, request, at_head, saved)
            plan = _with_components(vault, request, plan, components)
        if at_head is not None and _nothing_to_do(request, plan, at_head):
            unlocked.put_back()
            if components is not None:
                release_components(vault)
            return _untouched(request, plan, at_head)
        if components is None:
            components = _capture(vault, identifier, request, at_head, saved)
        what = request.describe()
        safety = add_safety(vault, saved, request.session_id, what, at_head, identifier, components)
        scanner.remember(saved.scan)
        token = vault.ids.new_id()
        outcome = carry_out(
            vault,
            request,
            plan,
            safety,
            token=token,
            head_before=head,
            unlocked=unlocked,
        )
        follow_restore(vault, request.session_id)
        return _with_drift(vault, request, outcome)
    except BaseException as error:
        unlocked.put_back()
        note_state(error, NOTHING_CHANGED if outcome is None else RESTORE_DONE)
        raise


def _with_drift(vault: Vault, request: RestoreRequest, outcome: RestoreOutcome) -> RestoreOutcome:
    """With git's position, if the restored files belong to another commit."""
    if not outcome.steps:
        return outcome
    drift = git_drift(vault, request.target, request.components)
    if drift is None:
        return outcome
    warnings = (drift.words(),) if drift.matters else ()
    return replace(outcome, git=drift, warnings=(*outcome.warnings, *warnings))


def _capture(
    vault: Vault,
    identifier: CheckpointId,
    request: RestoreRequest,
    head: Checkpoint | None,
    saved: SavedTree,
) -> CapturedComponents:
    """Captures all component state that the restore may change, so that undo can restore it."""
    intended = intended_of(vault, request.target, request.components)
    return capture_components(
        vault,
        identifier,
        head,
        intended=intended,
        beyond_budget=True,
        scan=saved.scan,
    )


def _with_components(
    vault: Vault, request: RestoreRequest, plan: RestorePlan, components: CapturedComponents
) -> RestorePlan:
    steps = plan_components(vault, request.target, request.components, components.states)
    why = first_blocked(steps)
    if why is not None and not request.best_effort:
        # Release what the capture kept alive, because its checkpoint will not be made.
        release_components(vault)
        raise RestoreConflict(
            f"cannot restore: {why}",
            hint="fix that and try again, restore only files, or skip it: --best-effort",
        )
    return with_edits_outside(request, with_component_steps(plan, steps))


def _nothing_to_do(request: RestoreRequest, plan: RestorePlan, head: Checkpoint) -> bool:
    """Whether there is nothing to change or record. A requested restore is recorded even without
    changes, so that the next undo refers to it. Not recorded: a reset of a round without work, and
    a trigger that found the wanted state."""
    automatic = request.only_changes and request.kind is OperationKind.RESTORE
    if plan.steps or not (automatic or request.kind is OperationKind.RESET):
        return False
    if any(step.actions or step.blocked for step in plan.components):
        return False
    return bool(request.paths) or request.target.tree == head.tree


def _untouched(request: RestoreRequest, plan: RestorePlan, head: Checkpoint) -> RestoreOutcome:
    return RestoreOutcome(
        restored_to=request.target.id,
        record=head.id,
        safety=request.target.id,
        steps=(),
        skipped=tuple(PathProblem(b.path, b.reason) for b in plan.blocked),
        kept=plan.kept,
        warnings=plan.warnings,
        recorded=False,
        missing=plan.missing,
    )


def _blocked(plan: RestorePlan) -> RestoreConflict:
    first = plan.blocked[0]
    if first.reason.startswith(SkipReason.LOST.value):
        lost = ", ".join(to_text(b.path) or "the list of skipped paths" for b in plan.blocked[:5])
        return RestoreConflict(
            f"the checkpoint is damaged: {len(plan.blocked)} of its paths are lost ({lost})",
            hint="restore everything else: --best-effort",
        )
    more = f" (and {len(plan.blocked) - 1} more)" if len(plan.blocked) > 1 else ""
    if plan.under_way:
        return RestoreConflict(
            f"cannot restore {to_text(plan.under_way[0])} now: {UNDER_WAY}{more}",
            hint=(
                "stop the program that writes to it and try again, or skip such paths: "
                "--best-effort"
            ),
        )
    return RestoreConflict(
        f"restoring {to_text(first.path)} would lose it: {first.reason}{more}",
        hint="move it elsewhere and try again, or skip such paths: --best-effort",
    )


def save_and_plan(
    vault: Vault,
    scanner: Scanner,
    request: RestoreRequest,
    unlocked: Unlocked,
) -> tuple[SavedTree, RestoreRequest, RestorePlan]:
    """Called with the store's lock held."""
    if request.added:
        tree = amended_tree(vault, request.target.tree, dict(request.added))
        request = replace(request, tree=tree)
    saved = save_present(vault, scanner, request)
    if request.hunks is not None:
        from holdfast.engine.restore.hunks import store_and_plan_hunks

        return saved, *store_and_plan_hunks(vault, saved.scan, request)
    plan = make_plan(vault, saved.scan, request)
    for _ in range(_WAITS):
        if not plan.under_way:
            break
        with no_transaction(vault, plan.under_way) as quiet:
            if quiet:
                saved = save_present(vault, scanner, request)
                plan = make_plan(vault, saved.scan, request)
    if not plan.blocked or not unlocked.unlock(locked_paths(saved.scan, plan)):
        return saved, request, plan
    saved = save_present(vault, scanner, request)
    modes = {path: NewMode(mode) for path, mode in unlocked.modes.items()}
    saved = saved.with_tree(amended_tree(vault, saved.scan.tree, modes))
    plan = make_plan(vault, saved.scan, request)
    return saved, request, plan
