"""Recovery from a crashed restore, before any other operation on the store.

    no journal                → staging directories are leftovers of an unstarted restore: remove
    journal, already recorded → only leftovers remain
    journal                   → save unsaved content of staging, then restore again to the same
                                target (or, if it was being rolled back, to its safety checkpoint)

The second restore starts from a new scan, so it does not matter how far the first one got.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import EXACT
from holdfast.domain.errors import HoldfastError, RestoreFailed, StoreDamaged, StoreReadOnly
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import RecoveredRestore
from holdfast.domain.paths import basename, parent
from holdfast.domain.trees.changes import Replacement, tree_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.engine.components.restore import (
    intended_of,
    plan_components,
    with_component_steps,
)
from holdfast.engine.restore.carry_out import carry_out, os_error_words
from holdfast.engine.restore.conflicts import amended_tree, open_staging
from holdfast.engine.restore.database_groups import groups_of
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles, leftovers
from holdfast.engine.restore.journal import Journal, decode_journal, encode_journal
from holdfast.engine.restore.permissions import restore_noted_modes
from holdfast.engine.restore.plan import make_plan
from holdfast.engine.restore.records import (
    RestoreRequest,
    add_safety_row,
    rescue,
    save_present,
)
from holdfast.engine.restore.recovery_report import add_to_report
from holdfast.engine.restore.staging import remove_contents
from holdfast.engine.save.workspace_tree import dry_scan
from holdfast.engine.scan.scanner import Scan, Scanner
from holdfast.engine.stored_objects import cached_loader, entry_at
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace


def recover(vault: Vault, scanner: Scanner) -> RecoveredRestore:
    """Called with the store's lock held, if a restore left something behind."""
    data = vault.journal.read()
    if data is None:
        # Their content is not needed, so one that cannot be removed does no harm.
        with contextlib.suppress(PermissionError):
            _remove_leftovers(vault)
        restore_noted_modes(vault, lambda path: None)
        return RecoveredRestore()
    journal = decode_journal(data)
    if vault.catalog.operation_with_token(journal.token) is None:
        done = _finish(vault, scanner, journal)
    else:
        done = RecoveredRestore(rolled_back=journal.backwards)
    _remove_leftovers(vault, journal.staging)
    restore_noted_modes(vault, _restored_modes(vault, journal))
    target = vault.catalog.checkpoint(journal.session_id, journal.target)
    done = replace(
        done,
        kind=journal.kind,
        restored_to=journal.target,
        name=None if target is None else target.name,
    )
    add_to_report(vault, journal.token, done)
    vault.journal.remove()
    return done


def try_recover(
    vault: Vault, scanner: Scanner, *, required: bool
) -> tuple[RecoveredRestore | None, str | None]:
    """`recover`, for a caller whose lock may be read-only if the store cannot be written.

    Returns the reason if it fails, unless it is `required`: saves and reads continue whatever a
    restore left behind. Restores and deletions need a completed recovery, and are refused."""
    try:
        with vault.lock.hold():
            trouble = _moved_on(vault, scanner)
            if trouble is None:
                return recover(vault, scanner), None
    except StoreReadOnly as error:
        raise StoreReadOnly(
            f"a restore was interrupted and cannot be repaired: {error.message}", hint=error.hint
        ) from error
    except (OSError, HoldfastError) as error:
        trouble = error.message if isinstance(error, HoldfastError) else os_error_words(error)
        _note(vault, lambda journal: replace(journal, trouble=trouble))
        if required and isinstance(error, HoldfastError):
            raise
    if required:
        raise RestoreFailed(
            f"an earlier restore could not be finished: {trouble}",
            hint="quarantine it: holdfast repair",
        )
    return None, trouble


def note_saved_since(vault: Vault, saved: Digest) -> None:
    """Record that a tree was saved despite an unfinished restore."""
    _note(vault, lambda journal: replace(journal, saved_since=journal.saved_since or saved))


def _moved_on(vault: Vault, scanner: Scanner) -> str | None:
    """The trouble of an unfinished restore if work has continued since: the workspace differs from
    the state saved meanwhile. Recovery must not touch it; `holdfast repair` handles the rest."""
    data = vault.journal.read()
    journal = None if data is None else decode_journal(data)
    if journal is None or journal.saved_since is None:
        return None
    if not journal.moved_on:
        if dry_scan(vault, scanner).tree == journal.saved_since:
            return None
        _note(vault, lambda noted: replace(noted, moved_on=True))
    return journal.trouble


def _note(vault: Vault, change: Callable[[Journal], Journal]) -> None:
    """Update the journal, best effort on a failing disk."""
    with contextlib.suppress(OSError, HoldfastError):
        data = vault.journal.read()
        if data is None:
            return
        before = decode_journal(data)
        after = change(before)
        if after != before:
            vault.journal.write(encode_journal(after))


def _restored_modes(vault: Vault, journal: Journal) -> Callable[[bytes], int | None]:
    """The mode of a path in the restored state. The checkpoint may be gone, if a power cut brought
    back an old journal."""
    goal = journal.safety if journal.backwards else journal.target
    checkpoint = vault.catalog.checkpoint(journal.session_id, goal)
    tree = checkpoint.tree if checkpoint is not None else None
    load = cached_loader(vault.load_tree)

    def mode_of(path: bytes) -> int | None:
        entry = None if tree is None else entry_at(load, tree, path)
        return entry.mode if isinstance(entry, (FileEntry, DirectoryEntry)) else None

    return mode_of


def _finish(vault: Vault, scanner: Scanner, journal: Journal) -> RecoveredRestore:
    journal, safety = _clear_staging(vault, journal)
    if not journal.backwards:
        target = _checkpoint(vault, journal.session_id, journal.target)
        try:
            return _restore_again(vault, scanner, journal, target, safety)
        except HoldfastError:
            # Use that attempt's journal, if it wrote one: it has its own slots.
            data = vault.journal.read()
            journal = journal if data is None else decode_journal(data)
            journal, safety = _clear_staging(vault, journal.marked_for_rollback())
            vault.journal.write(encode_journal(journal))
    return _restore_again(vault, scanner, journal, safety, safety)


def _clear_staging(vault: Vault, journal: Journal) -> tuple[Journal, Checkpoint]:
    """Save content that is only in staging, clear staging, and restore directory modes."""
    safety = _checkpoint(vault, journal.session_id, journal.safety)
    _sync_changes(vault, journal)
    safety = rescue(vault, journal, safety)
    put_modes_back(vault, journal.modes)
    if safety.id != journal.safety:
        journal = replace(journal, safety=safety.id)
        vault.journal.write(encode_journal(journal))
    _remove_leftovers(vault, journal.staging)
    return journal, safety


def _restore_again(
    vault: Vault,
    scanner: Scanner,
    journal: Journal,
    goal: Checkpoint,
    safety: Checkpoint,
) -> RecoveredRestore:
    request = RestoreRequest(
        session_id=journal.session_id,
        target=goal,
        paths=journal.paths,
        best_effort=journal.best_effort,
        kind=OperationKind.RESTORE if journal.backwards else journal.kind,
        reverses=journal.reverses,
        note=journal.note,
        hunks=None if journal.backwards else journal.hunks,
        tree=None if journal.backwards else journal.tree,
        components=_components(journal),
        rolls_back=_written_trees(vault, journal) if journal.backwards else None,
    )
    saved = save_present(vault, scanner, request)
    plan = make_plan(vault, saved.scan, request)
    # Without databases, which are checked again when they are written.
    databases = {plan.steps[number].path for number in groups_of(plan.steps)}
    reached = (request.goal.tree, *(request.rolls_back or ()))
    later = _files_written_since(vault, safety, reached, saved.scan, but=databases)
    if later:
        safety = add_safety_row(vault, safety, amended_tree(vault, safety.tree, later))
    present = None
    if journal.components:
        # The user may have used git, for example, since the crash: save the current state, too.
        intended = intended_of(vault, goal, request.components)
        present = add_safety_row(vault, safety, safety.tree, intended=intended)
        steps = plan_components(vault, goal, request.components)
        plan = with_component_steps(plan, steps)
    scanner.remember(saved.scan)
    outcome = carry_out(
        vault,
        request,
        plan,
        safety,
        token=journal.token,
        head_before=journal.head_before,
        present=present,
    )
    return RecoveredRestore(
        rolled_back=journal.backwards,
        files_changed=outcome.files_changed,
        overwritten=tuple(sorted(step.path for step in outcome.steps if step.path in later)),
        safety=outcome.safety,
    )


def _written_trees(vault: Vault, journal: Journal) -> tuple[Digest, ...]:
    """The trees that the rolled-back restore may have written to the workspace. The checkpoint may
    be gone, if a power cut brought back an old journal."""
    target = vault.catalog.checkpoint(journal.session_id, journal.target)
    return () if target is None else (journal.tree or target.tree,)


def _components(journal: Journal) -> tuple[tuple[str, str], ...]:
    """The components to restore; for a rollback, exactly as they were before."""
    if not journal.backwards:
        return journal.components
    return tuple((name, EXACT) for name, _ in journal.components)


def _files_written_since(
    vault: Vault,
    safety: Checkpoint,
    reached: tuple[Digest, ...],
    scan: Scan,
    *,
    but: Collection[bytes],
) -> dict[bytes, Replacement]:
    """Files written after the crash, possibly long after: neither as before the restore nor as the
    restore makes them. Undo must restore them. `reached` includes trees that a rolled-back restore
    may have written."""
    made: list[dict[bytes, Entry | None]] = [
        {change.path: change.new for change in tree_changes(vault.load_tree, safety.tree, tree)}
        for tree in reached
    ]
    written: dict[bytes, Replacement] = {}
    for change in tree_changes(vault.load_tree, safety.tree, scan.tree):
        found = change.new
        if found is None or isinstance(found, DirectoryEntry) or change.path in but:
            continue
        if not any(found.same_state(each.get(change.path)) for each in made):
            written[change.path] = found
    return written


def _sync_changes(vault: Vault, journal: Journal) -> None:
    """The killed process may have synced nothing, and finished steps are not repeated. So make its
    changes durable before the restore is recorded. Components may have changed files anywhere, such
    as a worktree on another disk."""
    if journal.components:
        vault.fs.sync_everything()
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in {b"", *(parent(staging) for staging in journal.staging)}:
            # An inaccessible one shares a file system with another, or nothing was done in it.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                vault.fs.sync_all(handles.open(path))


def put_modes_back(vault: Vault, modes: dict[bytes, int]) -> None:
    """Restore the modes of directories that the crash left writable, before the restore goes on."""
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in sorted(modes, key=lambda p: -p.count(b"/")):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                handles.open_for_change(path)
                handles.set_modes({path: modes[path]})


def _checkpoint(vault: Vault, session_id: SessionId, wanted: CheckpointId) -> Checkpoint:
    checkpoint = vault.catalog.checkpoint(session_id, wanted)
    if checkpoint is None:
        raise StoreDamaged(
            f"an unfinished restore names the checkpoint {wanted}, which does not exist",
            hint="run: holdfast check",
        )
    return checkpoint


def _remove_leftovers(vault: Vault, directories: tuple[bytes, ...] = ()) -> None:
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in sorted({*directories, *leftovers(vault, handles)}):
            try:
                fd = open_staging(vault, handles, path)
            except OSError as error:
                if error.errno not in NO_DIRECTORY:
                    raise
                continue  # gone, or replaced by something else
            remove_contents(vault.fs, fd)
            handles.forget(path)
            vault.fs.rmdir(basename(path), dir_fd=handles.open(parent(path)))
