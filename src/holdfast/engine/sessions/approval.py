"""Approving and discarding rounds of work.

    approve: save the workspace → approve that checkpoint, merge the round, begin the next one
    reset:   restore the last approved (or the first) state → the round is abandoned;
             if nothing differs, do nothing

Guarantee: an approval names a durable checkpoint of exactly the workspace's content, in one
transaction with the new round. A reset is a restore with all of its safety. `undo`, or a `restore`
of the abandoned round, brings the discarded work back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint, Kind, NewCheckpoint
from holdfast.domain.errors import NotFound, Refused, StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import (
    ENDED_BY,
    Round,
    Session,
    SessionStatus,
    round_name,
    round_title,
    rounds_of,
)
from holdfast.domain.trees.changes import tree_changes
from holdfast.engine.components.component_snapshot import (
    CapturedComponents,
    capture_components,
    same_components,
)
from holdfast.engine.history.history import head_checkpoint
from holdfast.engine.save.save import NOWHERE, add_to_history, conversation_position, new_checkpoint
from holdfast.engine.save.workspace_tree import SavedTree, save_tree
from holdfast.engine.scan.scanner import Scan, Scanner
from holdfast.engine.sessions.lifecycle import require_open_session
from holdfast.engine.stored_objects import loader_for
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.values.classes import dataclass, replace

if TYPE_CHECKING:  # only a reset needs these
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.domain.restore.plan import RestorePlan
    from holdfast.engine.engine import Engine
    from holdfast.engine.restore.records import RestoreRequest


@dataclass(frozen=True, slots=True)
class ApprovalStatus:
    """The approval state of a session. `base` is the last approved checkpoint, or the first one.

    `has_unapproved`: HEAD or, if it was scanned, the workspace differs from `base`. `unsaved`: the
    workspace differs from the session's HEAD and from its own, apart from times; None if it was not
    scanned."""

    active: Round
    checkpoints: int
    has_unapproved: bool
    base: CheckpointId | None
    approved: CheckpointId | None
    last_approved_at_ns: int | None
    unsaved: bool | None = None

    @property
    def active_session(self) -> str | None:
        """The name of the round with work to approve; None when everything is approved."""
        is_approved = self.approved is not None and not self.has_unapproved
        return None if is_approved else self.active.name

    @property
    def session_ref(self) -> CheckpointId | None:
        """The checkpoint that this work began from; None when everything is approved."""
        return None if self.active_session is None else self.base


@dataclass(frozen=True, slots=True)
class ApproveOutcome:
    """`count` is the number of checkpoints that lead to the approved state, without undone work.
    `saved` is true if the approval made the last one."""

    approved: Checkpoint
    merged: str
    new_round: str
    count: int
    saved: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResetOutcome:
    """A reset's restore, the round it abandoned and the one it began. If there was nothing to
    reset, `abandoned` is None and `new_round` is the round that continues."""

    restored: RestoreOutcome
    abandoned: str | None
    new_round: str

    @property
    def reset_to(self) -> CheckpointId:
        return self.restored.restored_to


def approval(vault: Vault, session_id: SessionId, scan: Scan | None = None) -> ApprovalStatus:
    """Quick, from records alone; exact with a scan of the workspace."""
    session = _required(vault, session_id)
    past = rounds_in(vault, session_id)
    base = _base(vault, session)
    head = vault.catalog.checkpoint(session.id, session.head)
    merged = [r for r in past if r.approved is not None]
    recorded = head is not None and base is not None and head.tree != base.tree
    return ApprovalStatus(
        past[-1],
        vault.catalog.count_in_round(session_id, session.round),
        recorded or (scan is not None and _differs(vault, base, scan)),
        base.id if base else None,
        session.approved,
        merged[-1].ended_at_ns if merged else None,
        # The workspace may be at a checkpoint of another session, which has everything.
        None
        if scan is None
        else all(_differs(vault, head_checkpoint(vault, one), scan) for one in (session_id, None)),
    )


def _differs(vault: Vault, checkpoint: Checkpoint | None, scan: Scan) -> bool:
    """Whether restoring the checkpoint would change something; true if it cannot be read."""
    if checkpoint is None:
        return True
    if checkpoint.tree == scan.tree:
        return False
    try:
        return any(True for _ in tree_changes(loader_for(vault, scan), checkpoint.tree, scan.tree))
    except StoreDamaged:
        return True


def rounds_in(vault: Vault, session_id: SessionId) -> list[Round]:
    """All rounds of a session, oldest first; the last one is active."""
    session = _required(vault, session_id)
    endings = vault.catalog.operations(session.id, kinds=tuple(ENDED_BY))
    return rounds_of(session.created_at_ns, session.round, endings)


def counted_rounds(vault: Vault, session_id: SessionId) -> list[Round]:
    """The same, each with its number of checkpoints."""
    return [
        replace(one, checkpoints=vault.catalog.count_in_round(session_id, one.number))
        for one in rounds_in(vault, session_id)
    ]


def approve(engine: Engine, session_id: SessionId, message: str | None) -> ApproveOutcome:
    """Approve the current workspace, and begin the next round."""
    with engine.recovered(required=True):
        outcome = _approve(engine.vault, engine.scanner, session_id, message)
    return engine.with_mirror_warnings(outcome)


def _approve(
    vault: Vault, scanner: Scanner, session_id: SessionId, message: str | None
) -> ApproveOutcome:
    session = require_open_session(vault, session_id) or _required(vault, session_id)
    this_round = round_name(session.round)
    title = round_title(this_round)
    intent = make_intent(message or f"Approved {title}", confidence=1.0)
    saved = save_tree(vault, scanner)
    identifier = CheckpointId(vault.ids.new_id())
    head = vault.catalog.checkpoint(session.id, session.head)
    components = capture_components(vault, identifier, head, scan=saved.scan)
    present = _checkpoint_of_state(vault, session, saved, components)
    base = _base(vault, session)
    count = _approved_count(vault, session, present, base)
    began = _begins_with_base(vault, session, base)
    same = present is not None or (head is not None and same_components(vault, head, components))
    unchanged = same and base is not None and not _differs(vault, base, saved.scan)
    if unchanged and (count == int(began) or session.approved is not None):
        raise Refused(
            f"nothing to approve: nothing changed in {title}",
            hint="show the session: holdfast status",
        )
    warnings: list[str] = []
    wanted: Checkpoint | NewCheckpoint | None = present
    if wanted is None:
        wanted = new_checkpoint(
            vault,
            saved,
            session_id=session.id,
            parent=head,
            kind=Kind.MANUAL,
            intent=intent,
            position=conversation_position(vault, session.id, NOWHERE)[0],
            round_number=session.round,
            identifier=identifier,
            components=components,
        )
        warnings += components.troubles
        if session.status is SessionStatus.ENDED:
            late = "had ended and stays ended; the changes since then are approved"
            warnings.append(f"the session {session.id!r} {late}")
    checkpoint = _record_approval(vault, session, wanted, intent.reasoning if message else None)
    scanner.remember(saved.scan)
    next_round = round_name(session.round + 1)
    return ApproveOutcome(
        checkpoint, this_round, next_round, count - int(began), present is None, tuple(warnings)
    )


def _approved_count(
    vault: Vault, session: Session, present: Checkpoint | None, base: Checkpoint | None
) -> int:
    """The number of checkpoints in the round that lead to the approved state, including one that is
    about to be made. Work that a restore has undone is not approved, so it is not counted."""
    end = present.id if present is not None else session.head
    if end is None:
        return 1
    on_line = vault.catalog.count_in_round(session.id, session.round, leading_to=end)
    before = _first_open_round(vault, session)
    if before < session.round:  # an undo of a reset brings back work of the abandoned round
        line = [o for o in _line(vault, session, end, since=before) if not o.kind.is_record]
        older = [one.id for one in line if one.round < session.round]
        only_base = base is not None and base.kind is not Kind.INITIAL and older == [base.id]
        on_line = len(line) - int(only_base)  # a reset has returned to the base: that is no work
    return on_line + (present is None)


def _begins_with_base(vault: Vault, session: Session, base: Checkpoint | None) -> bool:
    """Whether the count includes the session's initial checkpoint, which is no work."""
    if base is None or base.kind is not Kind.INITIAL or session.approved is not None:
        return False
    return base.round >= _first_open_round(vault, session)


def _first_open_round(vault: Vault, session: Session) -> int:
    """The number of the first round since the last approval: the current one, or an abandoned
    one."""
    merged = [one.number for one in rounds_in(vault, session.id) if one.approved is not None]
    return merged[-1] + 1 if merged else 1


def _line(
    vault: Vault, session: Session, end: CheckpointId | None, *, since: int
) -> Iterator[Checkpoint]:
    """The checkpoints that lead to `end` in the rounds from this one on, newest first."""
    seen: set[CheckpointId] = set()
    at = vault.catalog.checkpoint(session.id, end)
    while at is not None and at.round >= since and at.id not in seen:
        seen.add(at.id)
        yield at
        at = vault.catalog.checkpoint(session.id, at.parent)


def _record_approval(
    vault: Vault, session: Session, wanted: Checkpoint | NewCheckpoint, note: str | None
) -> Checkpoint:
    with vault.catalog.transaction() as transaction:
        if isinstance(wanted, NewCheckpoint):
            wanted = add_to_history(transaction, wanted, session.head)
        transaction.add_operation(
            NewOperation(
                OperationKind.APPROVE,
                session.id,
                vault.clock.now_ns(),
                checkpoint=wanted.id,
                head_before=session.head,
                note=note,
            )
        )
        transaction.start_round(session.id, session.round + 1, approved=wanted.id)
    return wanted


def reset_request(vault: Vault, session_id: SessionId) -> RestoreRequest:
    """The restore that resets the work to the last approval, or to the start of the session."""
    from holdfast.engine.components.selection import choose_components
    from holdfast.engine.restore.records import RestoreRequest

    session = require_open_session(vault, session_id) or _required(vault, session_id)
    base = _base(vault, session)
    if base is None:
        raise NotFound(
            f"the session {session_id!r} has no checkpoint to go back to",
            hint='to create one: holdfast checkpoint "why"',
        )
    components = choose_components(vault, base)
    return RestoreRequest(session_id, base, kind=OperationKind.RESET, components=components)


def active_round(vault: Vault, session_id: SessionId) -> str:
    """The round that an approval would merge and a reset abandon."""
    return round_name(_required(vault, session_id).round)


def has_nothing_to_reset(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> bool:
    """Whether the workspace and HEAD are at the approved state already."""
    session = vault.catalog.session(request.session_id)
    head = vault.catalog.checkpoint(session.id, session.head) if session is not None else None
    changes = plan.steps or any(step.actions or step.blocked for step in plan.components)
    return not changes and head is not None and head.tree == request.target.tree


def require_same_base(vault: Vault, request: RestoreRequest) -> None:
    """`Refused` if an approval came after the reset was planned: the user did not mean to reset
    that."""
    if reset_request(vault, request.session_id).target.id != request.target.id:
        raise Refused(
            "the work was approved in the meantime; nothing was reset",
            hint="show the session: holdfast status",
        )


def reset_outcome(vault: Vault, session_id: SessionId, restored: RestoreOutcome) -> ResetOutcome:
    """What a completed reset means for the rounds."""
    if not restored.recorded:
        return ResetOutcome(restored, None, active_round(vault, session_id))
    record = vault.catalog.checkpoint(session_id, restored.record)
    assert record is not None  # the restore has just made it
    return ResetOutcome(restored, round_name(record.round - 1), round_name(record.round))


def _base(vault: Vault, session: Session) -> Checkpoint | None:
    """The last approval whose checkpoint still exists, or else the first checkpoint."""
    if (approved := vault.catalog.checkpoint(session.id, session.approved)) is not None:
        return approved
    for approval in reversed(vault.catalog.operations(session.id, kinds=(OperationKind.APPROVE,))):
        if (found := vault.catalog.checkpoint(session.id, approval.checkpoint)) is not None:
            return found
    return vault.catalog.first_checkpoint(session.id)


def _checkpoint_of_state(
    vault: Vault, session: Session, saved: SavedTree, components: CapturedComponents
) -> Checkpoint | None:
    """HEAD, if it matches the workspace, files and components. What only a restore record has,
    such as unsaved changes that an undo brought back, is not saved yet."""
    head = head_checkpoint(vault, session.id)
    if head is None or head.tree != saved.scan.tree:
        return None
    return head if same_components(vault, head, components) else None


def _required(vault: Vault, session_id: SessionId) -> Session:
    session = vault.catalog.session(session_id)
    if session is None:
        raise NotFound(
            f"unknown session: {session_id!r}",
            hint='the first checkpoint starts a session: holdfast checkpoint "why"',
        )
    return session
