"""Restoring a checkpoint.

    lock → scan and save the present state (safety) → plan → stage new content → journal
    → apply step by step → verify → one catalog transaction → staging and journal gone

Guarantees: before the first change the plan's inputs and the safety checkpoint are durable (I4);
after a crash at any point the next operation finishes the restore or takes it back; a failure
half-way takes back what was done. Nothing that is not in the store is overwritten or deleted.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint, SkipReason
from holdfast.domain.errors import NoSpace, RestoreConflict, RestoreFailed
from holdfast.domain.ids import CheckpointId, short
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import NOTHING_CHANGED, RESTORE_DONE, PathProblem, RestoreOutcome
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import UNDER_WAY, RestorePlan
from holdfast.domain.trees.entries import MODE_MASK, SETID_BITS
from holdfast.engine.components.captured import CapturedComponents, capture_components
from holdfast.engine.components.git_drift import git_drift
from holdfast.engine.components.manifests import release_components
from holdfast.engine.components.restore import (
    ComponentRestore,
    ComponentsFailed,
    blocked_outcomes,
    first_blocked,
    intended_of,
    mark_idle,
    plan_components,
    with_component_steps,
    without_blocked,
)
from holdfast.engine.conversation.conversation import follow_restore
from holdfast.engine.restore.conflicts import Unsaved, amended_tree, find_unsaved
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.restore.executor import Executor
from holdfast.engine.restore.journal import Journal, encode_journal
from holdfast.engine.restore.preview import with_left_alone
from holdfast.engine.restore.records import (
    RestoreRequest,
    add_safety,
    record_restore,
    rescue,
    resulting_tree,
)
from holdfast.engine.restore.safety_checkpoint import save_and_plan
from holdfast.engine.restore.slot_moves import StepFailed
from holdfast.engine.restore.staging import Staging, staging_prefix
from holdfast.engine.restore.unlock import Unlocked
from holdfast.engine.restore.verifier import verify
from holdfast.engine.save.save import SavedTree
from holdfast.engine.scan.scanner import Scanner
from holdfast.engine.stored_objects import cached_loader, entry_at
from holdfast.engine.vault import FULL, Vault
from holdfast.values.classes import replace

ROLLED_BACK = "rolled back"
ROLLED_BACK_LATER = "the next command rolls back what was done"
"""What is true of a restore that somebody cancelled."""


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
        plan = with_left_alone(vault, request, plan)
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
            scanner,
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
        _note_truth(error, NOTHING_CHANGED if outcome is None else RESTORE_DONE)
        raise


def _with_drift(vault: Vault, request: RestoreRequest, outcome: RestoreOutcome) -> RestoreOutcome:
    """With where git is, if the files that came back belong to another commit."""
    if not outcome.steps:
        return outcome
    drift = git_drift(vault, request.target, request.components)
    if drift is None:
        return outcome
    warnings = (drift.words(),) if drift.matters else ()
    return replace(outcome, git=drift, warnings=(*outcome.warnings, *warnings))


def _note_truth(error: BaseException, truth: str) -> None:
    """A Ctrl-C carries with it what is true of the restore, for whoever reports it."""
    if isinstance(error, KeyboardInterrupt) and not getattr(error, "__notes__", ()):
        error.add_note(truth)


def _capture(
    vault: Vault,
    identifier: CheckpointId,
    request: RestoreRequest,
    head: Checkpoint | None,
    saved: SavedTree,
) -> CapturedComponents:
    """Everything that the restore may change of components, so that undo can bring it back."""
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
        # What the capture keeps alive is for a checkpoint that there is not going to be.
        release_components(vault)
        raise RestoreConflict(
            f"the restore cannot be done: {why}",
            hint="put that right and try again, restore files alone, or skip it: --best-effort",
        )
    return with_component_steps(plan, steps)


def _nothing_to_do(request: RestoreRequest, plan: RestorePlan, head: Checkpoint) -> bool:
    """Whether there is nothing to change, and nothing to record. What somebody asked for is
    recorded also when the workspace is as it should be, so that the next undo is about it. There
    is no record of a reset in whose round nothing was done, nor of what a trigger found to be
    right already."""
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


def carry_out(
    vault: Vault,
    scanner: Scanner,
    request: RestoreRequest,
    plan: RestorePlan,
    safety: Checkpoint,
    *,
    token: str,
    head_before: CheckpointId | None,
    unlocked: Unlocked | None = None,
    present: Checkpoint | None = None,
) -> RestoreOutcome:
    """Execute a plan whose safety checkpoint is durable. Called again, with the same token, by
    recovery, which captured the components once more: `present`."""
    journal = _first_journal(request, plan, safety, token, head_before)
    recovering = vault.journal.read() is not None
    drop_setid = vault.settings.setuid == "drop"
    mode_mask = MODE_MASK & ~SETID_BITS if drop_setid else MODE_MASK
    load = cached_loader(vault.load_tree)
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        name = staging_prefix(vault) + token.encode()
        staging = Staging(vault.fs, vault.objects, handles, name, drop_setid=drop_setid)
        executor = Executor(
            vault.fs,
            vault.databases,
            handles,
            staging,
            setid_mask=mode_mask,
            best_effort=request.best_effort,
            saved=lambda path: entry_at(load, safety.tree, path),
        )
        executor.progress = vault.progress
        _stage(executor, staging, plan)
        journal = replace(
            journal,
            staging=tuple(staging.directories),
            modes=executor.closed_directories(plan.steps),
        )
        _write_first_journal(vault, journal, staging, recovering=recovering)
        restoring = ComponentRestore(
            vault,
            request.target,
            safety,
            without_blocked(plan.components),
            best_effort=request.best_effort,
            present=present,
        )
        try:
            executor.apply(plan.steps)
            executor.make_durable()
            wrong = verify(vault, handles, executor.done.to_be_read_back, mode_mask=mode_mask)
            if wrong and not request.best_effort:
                raise StepFailed(wrong[0].path, f"after the restore {wrong[0].reason}")
            vault.progress.advance("finishing", 0, None)
            executor.finish_modes()
            restoring.run()
            unsaved = find_unsaved(vault, executor.done.displaced)
            tree = amended_tree(vault, safety.tree, unsaved) if unsaved else safety.tree
            left_alone = {kept.path for kept in plan.kept} | {b.path for b in plan.blocked}
            left_alone |= {problem.path for problem in executor.done.problems}
            result = resulting_tree(vault, request, safety, left_alone)
            record, final_safety = record_restore(
                vault, request, safety, tree, result, token, head_before
            )
        except BaseException as error:
            if vault.catalog.operation_with_token(token) is not None:
                _note_truth(error, RESTORE_DONE)
                raise  # recorded: the next command tidies up
            try:
                _take_back(vault, journal, safety, executor, staging, restoring)
            except KeyboardInterrupt as again:
                _note_truth(again, ROLLED_BACK_LATER)
                raise
            if not recovering:  # else what the journal was written for is still to be put right
                vault.journal.remove()
            _note_truth(error, ROLLED_BACK)
            raise _failure(error) from error
        _tidy(vault, staging, unlocked, plan)
    return _outcome(request, plan, executor, restoring, (record.id, final_safety), unsaved, wrong)


def _tidy(vault: Vault, staging: Staging, unlocked: Unlocked | None, plan: RestorePlan) -> None:
    """What is left to do once a restore is recorded."""
    try:
        if unlocked is not None:
            unlocked.put_back(but={step.path for step in plan.steps})
        staging.remove()
        vault.journal.remove()
    except KeyboardInterrupt as error:
        _note_truth(error, RESTORE_DONE)
        raise


def _outcome(
    request: RestoreRequest,
    plan: RestorePlan,
    executor: Executor,
    restoring: ComponentRestore,
    recorded: tuple[CheckpointId, CheckpointId],
    unsaved: Unsaved,
    wrong: list[PathProblem],
) -> RestoreOutcome:
    return RestoreOutcome(
        restored_to=request.target.id,
        record=recorded[0],
        safety=recorded[1],
        steps=tuple(executor.done.steps),
        skipped=tuple(
            executor.done.problems + wrong + [PathProblem(b.path, b.reason) for b in plan.blocked]
        ),
        conflicts=tuple(
            PathProblem(path, "changed while the restore ran; the safety checkpoint has it")
            for path, entry in sorted(unsaved.items())
            if entry is not None
        ),
        kept=plan.kept,
        warnings=(*plan.warnings, *executor.done.warnings()),
        verified=not wrong,
        components=(
            *mark_idle(restoring.outcomes, plan.components),
            *blocked_outcomes(plan.components),
        ),
        missing=plan.missing,
        compared=executor.done.compared_files,
    )


def _first_journal(
    request: RestoreRequest,
    plan: RestorePlan,
    safety: Checkpoint,
    token: str,
    head_before: CheckpointId | None,
) -> Journal:
    return Journal(
        token=token,
        kind=request.kind,
        session_id=request.session_id,
        target=request.target.id,
        safety=safety.id,
        head_before=head_before,
        reverses=request.reverses,
        paths=request.paths,
        best_effort=request.best_effort,
        staging=(),
        slots={number: step.path for number, step in enumerate(plan.steps)},
        modes={},
        note=request.note,
        hunks=request.hunks,
        tree=request.tree,
        components=request.components,
    )


def _write_first_journal(
    vault: Vault, journal: Journal, staging: Staging, *, recovering: bool
) -> None:
    """When it fails nothing has changed yet, and nothing must happen later because of a journal
    that may stand nevertheless; unless one stood before, whose restore is being recovered."""
    try:
        vault.journal.write(encode_journal(journal))
    except BaseException:
        if not recovering:
            vault.journal.remove()
            staging.remove()
        raise


def _stage(executor: Executor, staging: Staging, plan: RestorePlan) -> None:
    try:
        executor.stage(plan.steps)
    except BaseException as error:
        staging.remove()
        raise _failure(error) from error


def _take_back(
    vault: Vault,
    journal: Journal,
    safety: Checkpoint,
    executor: Executor,
    staging: Staging,
    restoring: ComponentRestore,
) -> None:
    """Undo what was done. If even that fails, the journal says which way recovery has to go: a
    restore that was reported as failed is never finished later."""
    executor.free_handles()
    turned = _turn_back(vault, journal)
    restoring.revert()
    try:
        executor.undo_all()
        rescue(vault, journal, safety)
    except OSError as error:
        if not turned:
            _turn_back(vault, journal)
        raise RestoreFailed(
            f"the restore failed, and so did rolling it back: {os_error_words(error)}. Nothing is "
            f"lost: the state before it is saved as {short(safety.id)}, and the next command rolls "
            "it back",
            hint="run: holdfast status; if that does not help: holdfast repair",
        ) from error
    staging.remove()


def _turn_back(vault: Vault, journal: Journal) -> bool:
    """Whether the journal says durably that the restore is to be rolled back."""
    try:
        vault.journal.write(encode_journal(journal.turned_back()))
    except OSError:
        return False
    return True


def os_error_words(error: OSError) -> str:
    """With the path that stands in the way, if the system named it."""
    why = error.strerror or str(error)
    name = error.filename
    if isinstance(name, bytes):
        name = to_text(name)
    return f"{name}: {why}" if isinstance(name, str) else why


def _failure(error: BaseException) -> BaseException:
    if isinstance(error, StepFailed) and error.disk_full:
        return NoSpace(
            f"no space left for {error}; everything was put back as it was",
            hint="free some disk space and try again",
        )
    if isinstance(error, (StepFailed, ComponentsFailed)):
        way = "skip such paths" if isinstance(error, StepFailed) else "go on without it"
        return RestoreFailed(
            f"the restore failed at {error}; everything was put back as it was",
            hint=f"put the cause right and try again, or {way}: --best-effort",
        )
    if isinstance(error, OSError) and error.errno in FULL:
        return NoSpace(
            "no space left to finish the restore; everything was put back as it was",
            hint="free some disk space and try again",
        )
    if isinstance(error, OSError):
        return RestoreFailed(
            f"the restore failed: {error.strerror}; everything was put back as it was",
            hint="put the cause right and try again",
        )
    return error


def _blocked(plan: RestorePlan) -> RestoreConflict:
    first = plan.blocked[0]
    if first.reason.startswith(SkipReason.LOST.value):
        lost = ", ".join(to_text(b.path) or "what was left out" for b in plan.blocked[:5])
        return RestoreConflict(
            f"the checkpoint is damaged: {len(plan.blocked)} of its paths are lost ({lost})",
            hint="restore everything else: --best-effort",
        )
    more = f" (and {len(plan.blocked) - 1} more)" if len(plan.blocked) > 1 else ""
    if plan.under_way:
        return RestoreConflict(
            f"{to_text(plan.under_way[0])} cannot be restored now: {UNDER_WAY}{more}",
            hint="end what writes to it and try again, or skip such paths: --best-effort",
        )
    return RestoreConflict(
        f"{to_text(first.path)} cannot be restored without losing it: {first.reason}{more}",
        hint="move it away and try again, or skip such paths: --best-effort",
    )
