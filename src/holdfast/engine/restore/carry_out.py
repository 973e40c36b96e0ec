"""Executes a restore whose safety checkpoint is durable.

    stage new content → journal → apply step by step → verify → components
    → one catalog transaction → remove staging and journal

Guarantees: before the first change, the plan's inputs are durable (I4). After a crash at any point,
the next operation finishes the restore or rolls it back. A failure half-way rolls back all changes.
Nothing is overwritten or deleted unless the store has it.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError, NoSpace, RestoreFailed
from holdfast.domain.ids import CheckpointId, short
from holdfast.domain.outcomes import RESTORE_DONE, PathProblem, RestoreOutcome
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import RestorePlan
from holdfast.domain.trees.entries import MODE_MASK, SETID_BITS
from holdfast.engine.components.restore import (
    ComponentRestore,
    ComponentsFailed,
    blocked_outcomes,
    mark_idle,
    without_blocked,
)
from holdfast.engine.restore.conflicts import Unsaved, amended_tree, find_unsaved
from holdfast.engine.restore.directory_handles import DirectoryHandles, staging_prefix
from holdfast.engine.restore.executor import Executor
from holdfast.engine.restore.journal import Journal, encode_journal
from holdfast.engine.restore.permissions import Unlocked
from holdfast.engine.restore.records import (
    RestoreRequest,
    record_restore,
    rescue,
)
from holdfast.engine.restore.staged_moves import RestoreSite, StepFailed
from holdfast.engine.restore.staging import Staging
from holdfast.engine.restore.verifier import verify
from holdfast.engine.stored_objects import cached_loader, entry_at
from holdfast.engine.vault import FULL, Vault

ROLLED_BACK = "rolled back"


ROLLED_BACK_LATER = "the next command rolls the restore back"
"""The state of a cancelled restore."""


def carry_out(
    vault: Vault,
    request: RestoreRequest,
    plan: RestorePlan,
    safety: Checkpoint,
    *,
    token: str,
    head_before: CheckpointId | None,
    unlocked: Unlocked | None = None,
    present: Checkpoint | None = None,
) -> RestoreOutcome:
    """Execute a plan whose safety checkpoint is durable. Recovery calls this again with the same
    token; it has captured the components once more (`present`)."""
    recovering = vault.journal.read() is not None
    mode_mask = MODE_MASK & ~SETID_BITS if vault.settings.setuid == "drop" else MODE_MASK
    load = cached_loader(vault.load_tree)
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        name = staging_prefix(vault) + token.encode()
        staging = Staging(vault.fs, vault.objects, handles, name, mode_mask=mode_mask)
        executor = Executor(
            RestoreSite(
                vault.fs,
                vault.databases,
                handles,
                staging,
                saved=lambda path: entry_at(load, safety.tree, path),
                mode_mask=mode_mask,
                best_effort=request.best_effort,
                progress=vault.progress,
            )
        )
        _stage(executor, staging, plan)
        journal = _first_journal(request, plan, safety, token, head_before, executor, staging)
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
            untouched = {kept.path for kept in plan.kept} | {b.path for b in plan.blocked}
            untouched |= {problem.path for problem in executor.done.problems}
            record, final_safety = record_restore(
                vault, request, safety, tree, untouched, token, head_before
            )
        except BaseException as error:
            if _is_recorded(vault, token, journal, safety):
                note_state(error, RESTORE_DONE)
                raise  # recorded: the next command removes the leftovers
            try:
                _roll_back(vault, journal, safety, executor, staging, restoring)
            except KeyboardInterrupt as again:
                note_state(again, ROLLED_BACK_LATER)
                raise
            if not recovering:  # otherwise, the journal's restore still has to be repaired
                vault.journal.remove()
            note_state(error, ROLLED_BACK)
            raise _failure(error) from error
        _tidy(vault, staging, unlocked, plan, recovering=recovering)
    return _outcome(request, plan, executor, restoring, (record.id, final_safety), unsaved, wrong)


def _tidy(
    vault: Vault,
    staging: Staging,
    unlocked: Unlocked | None,
    plan: RestorePlan,
    *,
    recovering: bool,
) -> None:
    """Remove leftovers after the restore is recorded. Recovery removes the journal itself, once it
    has written its report."""
    try:
        if unlocked is not None:
            unlocked.put_back(but={step.path for step in plan.steps})
        staging.remove()
        if not recovering:
            vault.journal.remove()
    except KeyboardInterrupt as error:
        note_state(error, RESTORE_DONE)
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
    executor: Executor,
    staging: Staging,
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
        staging=tuple(staging.directories),
        slots={number: step.path for number, step in enumerate(plan.steps)},
        modes=executor.closed_directories(plan.steps),
        note=request.note,
        hunks=request.hunks,
        tree=request.tree,
        components=request.components,
    )


def _write_first_journal(
    vault: Vault, journal: Journal, staging: Staging, *, recovering: bool
) -> None:
    """On failure, nothing has changed yet, so a journal that may exist anyway must have no effect
    later. The exception is a journal from before, whose restore is being recovered."""
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


def _roll_back(
    vault: Vault,
    journal: Journal,
    safety: Checkpoint,
    executor: Executor,
    staging: Staging,
    restoring: ComponentRestore,
) -> None:
    """Undo all changes. If even that fails, the journal says that recovery must roll back: a
    restore that was reported as failed is never finished later."""
    executor.free_handles()
    is_marked = _mark_for_rollback(vault, journal)
    try:
        restoring.revert()
        executor.undo_all()
        rescue(vault, journal, safety)
    except (OSError, HoldfastError) as error:
        if not is_marked:
            _mark_for_rollback(vault, journal)
        if isinstance(error, RestoreFailed):
            raise
        raise _left_to_recovery(error, safety) from error
    staging.remove()


def _is_recorded(vault: Vault, token: str, journal: Journal, safety: Checkpoint) -> bool:
    """Whether the restore was recorded before it failed. If that cannot be read, recovery decides:
    it keeps a recorded restore, and rolls back any other."""
    try:
        return vault.catalog.operation_with_token(token) is not None
    except (OSError, HoldfastError) as error:
        _mark_for_rollback(vault, journal)
        raise _left_to_recovery(error, safety) from error


def _left_to_recovery(error: OSError | HoldfastError, safety: Checkpoint) -> HoldfastError:
    why = error.message if isinstance(error, HoldfastError) else os_error_words(error)
    text = (
        f"the restore failed, and rolling it back failed too: {why}. "
        f"Nothing is lost: the previous state is saved as {short(safety.id)}, and the next "
        "command rolls the restore back"
    )
    if isinstance(error, NoSpace) or (isinstance(error, OSError) and error.errno in FULL):
        return NoSpace(text, hint="free some disk space, then run: holdfast status")
    return RestoreFailed(text, hint="run: holdfast status; if that does not help: holdfast repair")


def _mark_for_rollback(vault: Vault, journal: Journal) -> bool:
    """Record in the journal that the restore is to be rolled back; returns whether that worked."""
    try:
        vault.journal.write(encode_journal(journal.marked_for_rollback()))
    except (OSError, HoldfastError):
        return False
    return True


def os_error_words(error: OSError) -> str:
    """With the path that the system named, if any."""
    why = error.strerror or str(error)
    name = error.filename
    if isinstance(name, bytes):
        name = to_text(name)
    return f"{name}: {why}" if isinstance(name, str) else why


def _failure(error: BaseException) -> BaseException:
    if isinstance(error, StepFailed) and error.disk_full:
        return NoSpace(
            f"no space left for {error}; the restore was rolled back",
            hint="free some disk space and try again",
        )
    if isinstance(error, (StepFailed, ComponentsFailed)):
        way = "skip such paths" if isinstance(error, StepFailed) else "continue without it"
        return RestoreFailed(
            f"the restore failed at {error} and was rolled back",
            hint=f"fix the cause and try again, or {way}: --best-effort",
        )
    if isinstance(error, OSError) and error.errno in FULL:
        return NoSpace(
            "no space left to finish the restore; it was rolled back",
            hint="free some disk space and try again",
        )
    if isinstance(error, OSError):
        return RestoreFailed(
            f"the restore failed and was rolled back: {error.strerror}",
            hint="fix the cause and try again",
        )
    return error


def note_state(error: BaseException, truth: str) -> None:
    """Attach the restore's state to a Ctrl-C, for the report."""
    if isinstance(error, KeyboardInterrupt) and not getattr(error, "__notes__", ()):
        error.add_note(truth)
