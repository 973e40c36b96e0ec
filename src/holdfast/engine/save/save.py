"""Saving a workspace: scan, make the content durable, then the row that names it.

    scan (reads what changed, adds objects) → content durable → one catalog transaction

Guarantee: when `save` returns, the checkpoint is restorable after any crash; when it raises,
nothing was stored under any name (I1, I3).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from holdfast.domain.checkpoints import (
    AUTOMATIC_KINDS,
    ChangeCounts,
    Checkpoint,
    Kind,
    Position,
    Skipped,
    SkipReason,
)
from holdfast.domain.errors import BudgetReached, InvalidIntent, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import RESTORING_KINDS, OperationKind
from holdfast.domain.outcomes import SaveOutcome
from holdfast.domain.paths import to_text
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.settings.schema import Settings
from holdfast.domain.trees.changes import ChangeType, tree_changes, visible_changes
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.components.captured import CapturedComponents, capture_components
from holdfast.engine.save.space_limit import MeasuringWriter, SpaceLimit
from holdfast.engine.scan.policy import CapturePolicy
from holdfast.engine.scan.repositories import ExemptPaths
from holdfast.engine.scan.scanner import RulesOf, Scan, Scanner
from holdfast.engine.scan.state_trees import count_state_changes
from holdfast.engine.sessions.lifecycle import (
    require_checkpoint_allowed,
    require_open_session,
    resumed_remark,
)
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import CatalogTransaction, NewCheckpoint, NewOperation
from holdfast.ports.objects import ObjectWriter, WriteTotals
from holdfast.values.classes import dataclass, replace

NOWHERE = Position()
_SAME_WITHIN_NS = 60 * 1_000_000_000
UNMEASURED_BYTES = 64 << 20
"""Of new content, in a workspace that is known: more than most saves ever add."""


@dataclass(frozen=True, slots=True)
class SavedTree:
    """A scan whose content is durable and waits for a row to name it."""

    scan: Scan
    report: Digest
    totals: WriteTotals
    warnings: tuple[str, ...]

    def with_tree(self, tree: Digest) -> SavedTree:
        """The same save, named as a tree that differs from what the scan saw."""
        return replace(self, scan=replace(self.scan, tree=tree))


def save(
    vault: Vault,
    scanner: Scanner,
    session_id: SessionId,
    intent: SnapshotIntent,
    *,
    kind: Kind = Kind.MANUAL,
    position: Position = NOWHERE,
    reuse: bool = False,
    unsettled: tuple[Skipped, ...] = (),
    file_filter: Callable[[Path], bool] | None = None,
) -> SaveOutcome:
    """Called with the lock held. `unsettled` is what others are in the middle of. With `reuse`, and
    for every automatic trigger, a checkpoint of the same tree from within the last minute serves as
    well (SE-12)."""
    session = require_open_session(vault, session_id)
    name = intent.checkpoint_name
    if name is not None and vault.catalog.checkpoint_named(session_id, name) is not None:
        raise InvalidIntent(
            f"the session already has a checkpoint named {name!r}", hint="choose another name"
        )
    reuse = reuse and name is None
    # Whoever is content with the checkpoint there is may not need room for another.
    if not reuse:
        require_checkpoint_allowed(vault, session_id, kind)
    saved = save_tree(vault, scanner, file_filter=file_filter)
    if unsettled:
        from holdfast.engine.edits.running import with_unsettled

        saved = with_unsettled(vault, saved, unsettled)
    head = session.head if session is not None else None
    identifier = CheckpointId(vault.ids.new_id())
    at_head = _parent(vault, session_id, head)
    components = capture_components(
        vault,
        identifier,
        at_head,
        thorough=kind not in AUTOMATIC_KINDS or kind is Kind.RISKY,
        scan=saved.scan,
    )
    if (reuse or kind in AUTOMATIC_KINDS) and name is None:
        wanted = None if reuse else kind
        same = _same_of_late(vault, at_head, saved, components, wanted)
        if same is not None and _speaks_for(same, kind, intent):
            scanner.remember(saved.scan)
            return _outcome(same, saved, components, deduplicated=True)
    if reuse:
        require_checkpoint_allowed(vault, session_id, kind)
    position, warnings = conversation_position(vault, session_id, position)
    if _has_left_out(saved):
        from holdfast.engine.save.budget import left_out_words

        warnings = (*warnings, *left_out_words(vault, saved, at_head))
    # What triggers still bring after the end does not begin the work again.
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


def add_to_history(
    transaction: CatalogTransaction, new: NewCheckpoint, head: CheckpointId | None
) -> Checkpoint:
    """The row, its operation and the new HEAD, which belong together (I3)."""
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
    )


def _same_of_late(
    vault: Vault,
    head: Checkpoint | None,
    saved: SavedTree,
    components: CapturedComponents,
    kind: Kind | None,
) -> Checkpoint | None:
    """HEAD, if it is less than a minute old and says all that a new checkpoint would. Kinds are
    kept for different times, and a message or a risk is looked for by its own checkpoint: only one
    of the same kind serves, and for a tool also one that is kept as long."""
    if head is None or head.tree != saved.scan.tree or head.report != saved.report:
        return None
    serves = (Kind.TOOL, Kind.RISKY, Kind.MANUAL) if kind is Kind.TOOL else (kind,)
    if head.components != components.manifest or (kind is not None and head.kind not in serves):
        return None
    age_ns = vault.clock.now_ns() - head.created_at_ns
    if not 0 <= age_ns < _SAME_WITHIN_NS or not was_last_at(vault, head.tree):
        return None
    return head


def was_last_at(vault: Vault, tree: Digest) -> bool:
    """Whether the log ends with the workspace in this state. A session may know a state from
    before what others did since; then it came back, and that is worth a checkpoint. So is one after
    a restore of some paths, whose record notes them as a tool call."""
    kinds = (OperationKind.CHECKPOINT, *RESTORING_KINDS)
    newest = vault.catalog.operations_before(None, 1, kinds=kinds)
    identifier = newest[0].checkpoint if newest else None
    made = vault.catalog.checkpoint(None, identifier)
    if made is None or made.tree != tree:
        return False
    return made.kind is not Kind.RESTORE or not made.intent.tool_calls


def _speaks_for(same: Checkpoint, kind: Kind, intent: SnapshotIntent) -> bool:
    """Each user's message has a checkpoint that is named from it (SE-3), even where nothing changed
    since the last one; only the same message again needs none."""
    return kind is not Kind.MESSAGE or same.intent.reasoning == intent.reasoning


def _has_ended(session: Session | None) -> bool:
    return session is not None and session.status is SessionStatus.ENDED


def add_session(vault: Vault, transaction: CatalogTransaction, session_id: SessionId) -> None:
    transaction.add_session(Session(session_id, vault.clock.now_ns()))


def save_tree(
    vault: Vault,
    scanner: Scanner,
    *,
    wanted: tuple[Digest, ...] = (),
    file_filter: Callable[[Path], bool] | None = None,
    beyond_budget: bool = False,
    rules_of: RulesOf | None = None,
) -> SavedTree:
    """Scan and make content durable; the caller names it and then lets the scanner remember.

    A save that may not fit into the budget is measured first; room is made, and what still does
    not fit is left out, the largest files first (ST-3). What a restore saves first may go beyond
    the budget: being able to go back ranks higher.
    """
    if beyond_budget:
        return save_beyond_budget(
            vault, scanner, wanted=wanted, file_filter=file_filter, rules_of=rules_of
        )
    limit = SpaceLimit(vault)
    known = is_known(vault, scanner)
    if limit.bytes > UNMEASURED_BYTES and (known or _certainly_fits(vault, limit)):
        with contextlib.suppress(BudgetReached):
            saved = save_scan(
                vault, scanner, limit, wanted=wanted, file_filter=file_filter, unmeasured=known
            )
            if not _has_left_out(saved):
                return saved
            from holdfast.engine.save.budget import may_fit_now

            if not may_fit_now(vault, saved, limit):
                return saved
    from holdfast.engine.save.budget import save_within_budget  # hardly any save needs it

    return save_within_budget(vault, scanner, wanted=wanted, file_filter=file_filter)


def save_beyond_budget(
    vault: Vault,
    scanner: Scanner,
    *,
    wanted: tuple[Digest, ...],
    file_filter: Callable[[Path], bool] | None,
    largest_bytes: int | None = None,
    rules_of: RulesOf | None = None,
) -> SavedTree:
    """Only the disk is a limit."""
    limit = SpaceLimit(vault, budget=False)
    try:
        return save_scan(
            vault,
            scanner,
            limit,
            wanted=wanted,
            file_filter=file_filter,
            largest_bytes=largest_bytes,
            rules_of=rules_of,
        )
    except BudgetReached:
        raise limit.explanation() from None


def is_known(vault: Vault, scanner: Scanner) -> bool:
    """Whether a scan now would read only what has changed."""
    with vault.open_root() as root_fd:
        return scanner.knows_workspace(vault.scan_generation(root_fd))


def _certainly_fits(vault: Vault, limit: SpaceLimit) -> bool:
    from holdfast.engine.scan.scan_meter import certainly_fits  # only a first save needs it

    with vault.open_root() as root_fd:
        return certainly_fits(vault.fs, root_fd, capture_policy(vault), limit.bytes)


def _require_fits(
    vault: Vault, scanner: Scanner, file_filter: Callable[[Path], bool] | None, limit: SpaceLimit
) -> None:
    from holdfast.engine.save.budget import require_fits  # hardly any save needs it

    require_fits(vault, scanner, file_filter, limit)


def _has_left_out(saved: SavedTree) -> bool:
    return any(skip.reason is SkipReason.OVER_BUDGET for skip in saved.scan.skipped)


def save_scan(
    vault: Vault,
    scanner: Scanner,
    limit: SpaceLimit,
    *,
    wanted: tuple[Digest, ...],
    file_filter: Callable[[Path], bool] | None,
    unmeasured: bool = False,
    largest_bytes: int | None = None,
    rules_of: RulesOf | None = None,
) -> SavedTree:
    """One scan whose content is durable when it returns. `BudgetReached`, and nothing is stored,
    when it has more than the limit allows. One that is `unmeasured` is measured as soon as it turns
    out to be large."""
    policy = capture_policy(vault, file_filter)
    writer = vault.objects.writer(limit_bytes=limit.bytes)
    taking: ObjectWriter = writer
    if unmeasured:
        taking = MeasuringWriter(
            writer, UNMEASURED_BYTES, lambda: _require_fits(vault, scanner, file_filter, limit)
        )
    try:
        with vault.open_root() as root_fd:
            scan = scanner.scan(
                root_fd,
                policy,
                taking,
                generation=vault.scan_generation(root_fd),
                started_ns=vault.clock.now_ns(),
                wanted=wanted,
                rules_of=rules_of,
                progress=vault.progress,
                # What a filter decides, nobody else can know.
                aided_writer=None if policy.has_filter else writer,
                largest_bytes=largest_bytes,
            )
        vault.progress.advance("storing", 0, None)
        report = add_report(writer, scan.skipped)
        totals = writer.commit()
    except BaseException:
        writer.abandon()
        raise
    return SavedTree(scan, report, totals, limit.warnings(totals.stored_bytes))


def capture_policy(
    vault: Vault, file_filter: Callable[[Path], bool] | None = None
) -> CapturePolicy:
    """The rules, with the exceptions from them as they are now."""
    own_data = vault.files.path_inside_workspace()
    settings = vault.settings
    if settings.nested_repositories == "auto" and _is_project(vault):
        settings = replace(settings, nested_repositories="on")
    if file_filter is None:
        policy = _plain_policy(settings, vault.workspace, own_data)
    else:
        policy = CapturePolicy(settings, vault.workspace, file_filter, own_data=own_data)
    by_tools = settings.capture_named_ignored == "on"
    named = vault.files.named_paths() if by_tools else ()
    return policy.keeping(ExemptPaths(vault.fs, os.fsencode(vault.workspace), named))


def _is_project(vault: Vault) -> bool:
    from holdfast.domain.paths import shows_project  # late: few workspaces need to know

    with vault.open_root() as root_fd:
        return shows_project(vault.fs.list_names(root_fd))


@lru_cache(maxsize=16)
def _plain_policy(settings: Settings, workspace: Path, own_data: bytes | None) -> CapturePolicy:
    """Putting rules together takes longer than many a scan, and settings hardly ever change."""
    return CapturePolicy(settings, workspace, own_data=own_data)


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
    """Components are captured now unless that was done already, under that identifier."""
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
    counts = dict.fromkeys(ChangeType, 0)
    try:
        for change in visible_changes(tree_changes(vault.load_tree, before, scan.tree)):
            counts[change.type] += 1
    except StoreDamaged:
        # The parent cannot be read, which is no reason not to save what is there now.
        return ChangeCounts(added=scan.files)
    return ChangeCounts(
        counts[ChangeType.ADDED], counts[ChangeType.MODIFIED], counts[ChangeType.REMOVED]
    )


def _parent(vault: Vault, session_id: SessionId, head: CheckpointId | None) -> Checkpoint | None:
    return None if head is None else vault.catalog.checkpoint(session_id, head)


def add_report(writer: ObjectWriter, skipped: list[Skipped]) -> Digest:
    """What was left out is content too: equal reports are stored once."""
    rows = [[to_text(s.path), s.reason.name, s.detail] for s in skipped]
    data = json.dumps(rows, separators=(",", ":")).encode()
    digest = digest_of(data)
    writer.add(digest, data)
    return digest


def conversation_position(
    vault: Vault, session_id: SessionId, position: Position
) -> tuple[Position, tuple[str, ...]]:
    """The position, at the last message there is when nobody said which. A story that cannot be
    read is no reason not to save: then there are warnings."""
    if position.message_index is not None or not vault.has_story():
        return position, ()
    try:
        count = vault.story.message_count(session_id)
    except StoreDamaged as error:
        why = f"the checkpoint has no place in the conversation: {error.message}"
        return position, (f"{why} (run: holdfast repair)",)
    return replace(position, message_index=count - 1 if count else None), ()
