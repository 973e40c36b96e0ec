"""Saving a workspace: scan, make the content durable, then commit its catalog row.

    scan (read changed files, add objects) → content durable → one catalog transaction

Guarantee: when `save` returns, the checkpoint is restorable after any crash; when it raises,
nothing was stored under any name (I1, I3).
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.checkpoints import (
    AUTOMATIC_KINDS,
    ChangeCounts,
    Checkpoint,
    Kind,
    NewCheckpoint,
    Position,
    Skipped,
)
from holdfast.domain.errors import InvalidIntent, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import AFTER_CALL, SnapshotIntent
from holdfast.domain.operations import RESTORING_KINDS, OperationKind
from holdfast.domain.outcomes import SaveOutcome
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.trees.changes import ChangeType, TreeLoader, tree_changes, visible_changes
from holdfast.engine.components.component_snapshot import (
    CapturedComponents,
    capture_components,
    same_components,
)
from holdfast.engine.save.workspace_tree import SavedTree, has_left_out, save_tree
from holdfast.engine.scan.databases import may_have_databases
from holdfast.engine.scan.scanner import Scan, Scanner
from holdfast.engine.scan.state_trees import count_state_changes
from holdfast.engine.sessions.lifecycle import (
    require_checkpoint_allowed,
    require_open_session,
    resumed_remark,
)
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import (
    CatalogTransaction,
    NewOperation,
)
from holdfast.values.classes import replace

NOWHERE = Position()
_SAME_WITHIN_NS = 60 * 1_000_000_000


def save(
    vault: Vault,
    scanner: Scanner,
    session_id: SessionId,
    intent: SnapshotIntent,
    *,
    kind: Kind = Kind.MANUAL,
    position: Position = NOWHERE,
    reuse: bool = False,
    record_environment: bool = False,
    unsettled: tuple[Skipped, ...] = (),
) -> SaveOutcome:
    """Called with the lock held. `unsettled` are unfinished edits and tools of others. With
    `reuse`, and for automatic triggers, a checkpoint of the same tree that is less than a minute
    old is reused (SE-12)."""
    session = require_open_session(vault, session_id)
    name = intent.checkpoint_name
    if name is not None and vault.catalog.checkpoint_named(session_id, name) is not None:
        raise InvalidIntent(
            f"the session already has a checkpoint named {name!r}", hint="choose another name"
        )
    reuse = reuse and name is None
    # A caller that accepts an existing checkpoint may not need room for another.
    if not reuse:
        require_checkpoint_allowed(vault, session_id, kind)
    saved = save_tree(vault, scanner)
    if unsettled:
        from holdfast.engine.edits.open_activities import with_unsettled

        saved = with_unsettled(vault, saved, unsettled)
    head = session.head if session is not None else None
    identifier = CheckpointId(vault.ids.new_id())
    at_head = _parent(vault, session_id, head)
    components = capture_components(
        vault,
        identifier,
        at_head,
        thorough=kind not in AUTOMATIC_KINDS or kind is Kind.RISKY,
        recorded=_is_recorded(vault, kind, asked=record_environment),
        scan=saved.scan,
    )
    if (reuse or kind in AUTOMATIC_KINDS) and name is None:
        wanted = None if reuse else kind
        same = _recent_equivalent(vault, at_head, saved, components, wanted)
        if same is not None and _can_replace(same, kind, intent):
            scanner.remember(saved.scan)
            return _outcome(same, saved, components, deduplicated=True)
    if reuse:
        require_checkpoint_allowed(vault, session_id, kind)
    position, warnings = conversation_position(vault, session_id, position)
    if has_left_out(saved):
        from holdfast.engine.save.budget import left_out_words

        warnings = (*warnings, *left_out_words(vault, saved, at_head))
    # Late events after a session's end do not reopen it.
    resumes = kind not in AUTOMATIC_KINDS and _has_ended(session)
    if resumes:
        warnings = (*warnings, resumed_remark(session_id))
    new = new_checkpoint(
        vault,
        saved,
        session_id=session_id,
        parent=at_head,
        kind=kind,
        intent=intent,
        position=position,
        round_number=session.round if session is not None else 1,
        identifier=identifier,
        components=components,
    )
    with vault.catalog.transaction() as transaction:
        if session is None:
            add_session(vault, transaction, session_id)
        elif resumes:
            transaction.set_session_status(session_id, SessionStatus.ACTIVE)
        checkpoint = add_to_history(transaction, new, head)
    scanner.remember(saved.scan)
    outcome = _outcome(checkpoint, saved, components)
    return replace(outcome, warnings=(*outcome.warnings, *warnings)) if warnings else outcome


def _is_recorded(vault: Vault, kind: Kind, *, asked: bool) -> bool:
    """Whether to capture record-only components. Programs that save often do not pay for it."""
    when = vault.settings.record_environment
    return when == "always" or (when == "manual" and (asked or kind is Kind.RISKY))


def add_to_history(
    transaction: CatalogTransaction, new: NewCheckpoint, head: CheckpointId | None
) -> Checkpoint:
    """Add the row, its operation and the new HEAD in one transaction (I3)."""
    checkpoint = transaction.add_checkpoint(new)
    transaction.add_operation(
        NewOperation(
            OperationKind.CHECKPOINT,
            new.session_id,
            new.created_at_ns,
            checkpoint=new.id,
            head_before=head,
        )
    )
    transaction.set_head(new.session_id, new.id)
    return checkpoint


def _outcome(
    checkpoint: Checkpoint,
    saved: SavedTree,
    components: CapturedComponents,
    *,
    deduplicated: bool = False,
) -> SaveOutcome:
    return SaveOutcome(
        checkpoint,
        tuple(saved.scan.skipped),
        saved.totals.stored_bytes,
        saved.totals.deduplicated_bytes,
        saved.warnings,
        deduplicated,
        components.troubles,
        may_have_databases(saved.scan.root),
    )


def _recent_equivalent(
    vault: Vault,
    head: Checkpoint | None,
    saved: SavedTree,
    components: CapturedComponents,
    kind: Kind | None,
) -> Checkpoint | None:
    """HEAD, if it is less than a minute old and carries everything that a new checkpoint would.
    Kinds differ in retention, and users look for a message or a risk in its own checkpoint. So only
    the same kind qualifies, and for a tool also one with the same retention."""
    if head is None or head.tree != saved.scan.tree or head.report != saved.report:
        return None
    serves = (Kind.TOOL, Kind.RISKY, Kind.MANUAL) if kind is Kind.TOOL else (kind,)
    if kind is not None and head.kind not in serves:
        return None
    if not same_components(vault, head, components):
        return None
    age_ns = vault.clock.now_ns() - head.created_at_ns
    if not 0 <= age_ns < _SAME_WITHIN_NS or not was_last_at(vault, head.tree):
        return None
    return head


def was_last_at(vault: Vault, tree: Digest) -> bool:
    """Whether this tree is the last state in the log. A session may know the state from before
    other sessions' work: its return is worth a checkpoint. So is a state after a restore of some
    paths, which the log records as a tool call."""
    kinds = (OperationKind.CHECKPOINT, *RESTORING_KINDS)
    newest = vault.catalog.operations_before(None, 1, kinds=kinds)
    identifier = newest[0].checkpoint if newest else None
    made = vault.catalog.checkpoint(None, identifier)
    if made is None or made.tree != tree:
        return False
    return made.kind is not Kind.RESTORE or not made.intent.tool_calls


def _can_replace(same: Checkpoint, kind: Kind, intent: SnapshotIntent) -> bool:
    """Whether an existing checkpoint can replace a new one. Each user message gets a checkpoint
    named after it (SE-3), even if nothing changed; only a repeated message gets none. A call that
    names outside files needs a checkpoint that names them, because undo restores only those. A
    command needs the checkpoint before it, which quotes it; one after an edit does not qualify."""
    if kind is Kind.MESSAGE:
        return same.intent.reasoning == intent.reasoning
    after_edit = same.intent.reasoning.startswith(AFTER_CALL) and not _has_command(same.intent)
    if after_edit and _has_command(intent):
        return False
    return _outside(intent) <= _outside(same.intent)


def _has_command(intent: SnapshotIntent) -> bool:
    return any(isinstance(call, Mapping) and "command" in call for call in intent.tool_calls)


def _outside(intent: SnapshotIntent) -> set[str]:
    calls = [call for call in intent.tool_calls if isinstance(call, Mapping)]
    return {str(path) for call in calls for path in call.get("external", ())}


def _has_ended(session: Session | None) -> bool:
    return session is not None and session.status is SessionStatus.ENDED


def add_session(vault: Vault, transaction: CatalogTransaction, session_id: SessionId) -> None:
    transaction.add_session(Session(session_id, vault.clock.now_ns()))


def new_checkpoint(
    vault: Vault,
    saved: SavedTree,
    *,
    session_id: SessionId,
    parent: Checkpoint | None,
    kind: Kind,
    intent: SnapshotIntent,
    position: Position = NOWHERE,
    round_number: int = 1,
    identifier: CheckpointId | None = None,
    components: CapturedComponents | None = None,
) -> NewCheckpoint:
    """Captures components, unless they were already captured under that identifier."""
    scan = saved.scan
    if identifier is None:
        identifier = CheckpointId(vault.ids.new_id())
    if components is None:
        components = capture_components(vault, identifier, parent, scan=scan)
    return NewCheckpoint(
        id=identifier,
        session_id=session_id,
        parent=parent.id if parent else None,
        kind=kind,
        created_at_ns=vault.clock.now_ns(),
        tree=scan.tree,
        intent=intent,
        files=scan.files,
        size_bytes=scan.size_bytes,
        changed=count_changes(vault, parent.tree if parent else None, scan),
        report=saved.report,
        partial=bool(components.troubles) or any(skip.reason.is_failure for skip in scan.skipped),
        message_index=position.message_index,
        tool_use_id=position.tool_use_id,
        round=round_number,
        components=components.manifest,
    )


def count_changes(vault: Vault, before: Digest | None, scan: Scan) -> ChangeCounts:
    if before is None:
        return ChangeCounts(added=scan.files)
    if scan.previous is not None and scan.previous.digest == before:
        counted = count_state_changes(scan.previous, scan.root)
        if counted is not None:
            return counted
    try:
        return count_tree_changes(vault.load_tree, before, scan.tree)
    except StoreDamaged:
        # The parent is unreadable, but the current state can be saved.
        return ChangeCounts(added=scan.files)


def count_tree_changes(load: TreeLoader, old: Digest, new: Digest) -> ChangeCounts:
    counts = dict.fromkeys(ChangeType, 0)
    for change in visible_changes(tree_changes(load, old, new)):
        counts[change.type] += 1
    return ChangeCounts(
        counts[ChangeType.ADDED], counts[ChangeType.MODIFIED], counts[ChangeType.REMOVED]
    )


def _parent(vault: Vault, session_id: SessionId, head: CheckpointId | None) -> Checkpoint | None:
    return None if head is None else vault.catalog.checkpoint(session_id, head)


def conversation_position(
    vault: Vault, session_id: SessionId, position: Position
) -> tuple[Position, tuple[str, ...]]:
    """The position, by default at the last message. An unreadable story does not stop the save; it
    adds a warning."""
    if position.message_index is not None or not vault.has_story():
        return position, ()
    try:
        count = vault.story.message_count(session_id)
    except StoreDamaged as error:
        why = f"the checkpoint is not linked to the conversation: {error.message}"
        return position, (f"{why} (run: holdfast repair)",)
    return replace(position, message_index=count - 1 if count else None), ()
