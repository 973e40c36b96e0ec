"""The history records of a restore: its safety checkpoints, its record and its operation."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind, NewCheckpoint
from holdfast.domain.ids import CheckpointId, Digest, SessionId, short
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import is_within
from holdfast.domain.restore.selections import restore_intent
from holdfast.domain.trees.entries import Entry
from holdfast.engine.components.component_snapshot import CapturedComponents, capture_components
from holdfast.engine.save.save import NOWHERE, conversation_position, new_checkpoint
from holdfast.engine.save.workspace_tree import SavedTree, save_tree
from holdfast.engine.scan.scanner import RulesOf, Scanner
from holdfast.engine.stored_objects import cached_loader, entry_at
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.values.classes import dataclass, replace

if TYPE_CHECKING:
    from holdfast.domain.diff.hunk_choice import HunkChoice
    from holdfast.engine.restore.journal import Journal
    from holdfast.ports.component import Intended

_CERTAIN = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """The log's end and the workspace's tree, on which an undo of the last change was planned."""

    operation: int
    tree: Digest


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What to restore. `kind` and `reverses` tell an undo or redo from a plain restore.

    With `hunks`, only those of the one file in `paths`; `tree` is then the tree to reach instead of
    the target's own, once it is built. `components` are restored with the files, each in its mode.
    `note` is the reason; for an undo, what it undoes. `added` are paths that the target left out
    and that are restored anyway, from a later checkpoint; `tree` is then the tree to reach, too.
    `edited_outside` are files outside the workspace that an undo restores although they changed
    again: the key of each, and the planned change. `blocked_outside` are those that an undo leaves
    alone, each with the reason. `passed_over` are databases in use whose later
    changes an undo does not count as a step. With `only_changes`, a restore without changes
    leaves no record. `rolls_back` is set when an unfinished restore is rolled back: the trees that
    it may have written to the workspace.
    """

    session_id: SessionId
    target: Checkpoint
    paths: tuple[bytes, ...] = ()
    best_effort: bool = False
    kind: OperationKind = OperationKind.RESTORE
    reverses: int | None = None
    note: str | None = None
    hunks: HunkChoice | None = None
    tree: Digest | None = None
    components: tuple[tuple[str, str], ...] = ()
    seen: Seen | None = None
    only_changes: bool = False
    rolls_back: tuple[Digest, ...] | None = None
    added: tuple[tuple[bytes, Entry], ...] = ()
    edited_outside: tuple[tuple[str, str], ...] = ()
    blocked_outside: tuple[str, ...] = ()
    passed_over: tuple[bytes, ...] = ()

    @property
    def rules_of(self) -> RulesOf | None:
        """The tree whose ignore rules the scan applies besides the current ones."""
        return None if self.hunks is not None else RulesOf(self.target.tree, self.paths)

    @property
    def keeps_left_out(self) -> bool:
        """Whether files that the target's rules leave out stay. An undo, a redo and a rollback
        return exactly to a state that was scanned with the rules of both sides."""
        exact = self.kind is OperationKind.REDO or self.reverses is not None
        return not exact and self.rolls_back is None

    @property
    def goal(self) -> Checkpoint:
        """The target with the tree to reach."""
        return self.target if self.tree is None else replace(self.target, tree=self.tree)

    def describe(self) -> str:
        name = self.target.name or short(self.target.id)
        if self.kind is OperationKind.UNDO:
            return f"Undid {self.note or 'the restore'}: back to {name}"
        if self.kind is OperationKind.REDO:
            return f"Redid the restore: forward to {name}"
        if self.kind is OperationKind.RESET:
            return f"Reset to {name}"
        if self.hunks is not None and (number := self.hunks.hunk_count):
            return f"Restored to {name} ({number} selected {'hunk' if number == 1 else 'hunks'})"
        noun = "path" if len(self.paths) == 1 else "paths"
        some = f" ({len(self.paths)} selected {noun})" if self.paths else ""
        return f"Restored to {name}{some}"


def described_by_id(reasoning: str, name: str, identifier: CheckpointId) -> str:
    """A record's text with a checkpoint's id in place of a name that is being removed.

    Only texts from `describe` are changed, so that a name that is a common word stays in texts
    written by people.
    """
    ways = r"Restored to|Reset to|Undid [^\n]*: back to|Redid the restore: forward to"
    return re.sub(
        rf"\A((?:Before: )?(?:{ways}) ){re.escape(name)}(?=\Z| \(|, )",
        lambda match: match[1] + short(identifier),
        reasoning,
    )


def required_trees(vault: Vault, request: RestoreRequest) -> tuple[Digest, ...]:
    """The tree that the restore writes, and HEAD's, from which it may remove paths."""
    session = vault.catalog.session(request.session_id)
    head = session.head if session is not None else None
    at_head = vault.catalog.checkpoint(request.session_id, head)
    trees = (request.target.tree, *(request.rolls_back or ()))
    return trees if at_head is None else (*trees, at_head.tree)


def save_present(vault: Vault, scanner: Scanner, request: RestoreRequest) -> SavedTree:
    """Make everything that the restore may change durable."""
    return save_tree(
        vault,
        scanner,
        wanted=required_trees(vault, request),
        beyond_budget=True,
        rules_of=request.rules_of,
    )


def add_safety(
    vault: Vault,
    saved: SavedTree,
    session_id: SessionId,
    what: str,
    head: Checkpoint | None,
    identifier: CheckpointId,
    components: CapturedComponents,
) -> Checkpoint:
    """Add a row for the current state, before `what` is done. HEAD does not move."""
    why = f"Before: {what}"
    new = new_checkpoint(
        vault,
        saved,
        session_id=session_id,
        parent=head,
        kind=Kind.SAFETY,
        intent=SnapshotIntent(why, confidence=_CERTAIN),
        position=conversation_position(vault, session_id, NOWHERE)[0],
        round_number=head.round if head else 1,
        identifier=identifier,
        components=components,
    )
    return _add(vault, new, head.id if head else None)


def _add(vault: Vault, new: NewCheckpoint, head_before: CheckpointId | None = None) -> Checkpoint:
    with vault.catalog.transaction() as transaction:
        checkpoint = transaction.add_checkpoint(new)
        transaction.add_operation(
            NewOperation(
                OperationKind.CHECKPOINT,
                new.session_id,
                new.created_at_ns,
                checkpoint=new.id,
                head_before=head_before,
            )
        )
    return checkpoint


def record_restore(
    vault: Vault,
    request: RestoreRequest,
    safety: Checkpoint,
    safety_tree: Digest,
    untouched: Collection[bytes],
    token: str,
    head_before: CheckpointId | None,
) -> tuple[Checkpoint, CheckpointId]:
    """Add the record, its operation and the new HEAD in one transaction. `untouched` are paths that
    were left as they were.

    For restored components, the record has their current state. Its difference from the safety
    checkpoint tells an undo what the restore changed. For other components it repeats the safety
    checkpoint, even if another program has changed them meanwhile."""
    tree, report, files, size_bytes = _resulting_tree(vault, request, safety, untouched)
    now_ns = vault.clock.now_ns()
    session = vault.catalog.session(request.session_id)
    round_number = session.round if session is not None else 1
    if request.kind is OperationKind.RESET:
        round_number += 1
    identifier, components = CheckpointId(vault.ids.new_id()), safety.components
    if request.components:
        restored = dict(request.components)
        captured = capture_components(vault, identifier, safety, only=restored, beyond_budget=True)
        components = captured.manifest
    if safety_tree != safety.tree:
        safety = add_safety_row(vault, safety, safety_tree)
    record = NewCheckpoint(
        id=identifier,
        session_id=request.session_id,
        # After a restore of some paths, work continues from the previous state, and so does HEAD.
        parent=safety.id if request.paths else request.target.id,
        kind=Kind.RESTORE,
        created_at_ns=now_ns,
        tree=tree,
        intent=restore_intent(
            request.describe(),
            request.paths,
            tuple(request.hunks.names) if request.hunks is not None else (),
            confidence=_CERTAIN,
        ),
        files=files,
        size_bytes=size_bytes,
        changed=ChangeCounts(),
        report=report,
        restores_from=request.target.id,
        # A restore of some paths does not change the position in the conversation.
        message_index=safety.message_index if request.paths else request.target.message_index,
        round=round_number,
        components=components,
    )
    with vault.catalog.transaction() as transaction:
        added = transaction.add_checkpoint(record)
        transaction.add_operation(
            NewOperation(
                request.kind,
                request.session_id,
                now_ns,
                checkpoint=record.id,
                safety=safety.id,
                head_before=head_before,
                reverses=request.reverses,
                token=token,
                note=request.note,
            )
        )
        transaction.set_head(request.session_id, record.id)
        if session is not None and request.kind is OperationKind.RESET:
            transaction.start_round(session.id, round_number, approved=session.approved)
    return added, safety.id


def _resulting_tree(
    vault: Vault, request: RestoreRequest, safety: Checkpoint, untouched: Collection[bytes]
) -> tuple[Digest, Digest | None, int, int]:
    """The recorded workspace state: tree, report, files and bytes. That is the target or, after a
    restore of some paths, the safety checkpoint with those paths from the target."""
    target, digest = request.target, request.tree
    if request.paths:
        from holdfast.engine.restore.conflicts import amended_tree

        load = cached_loader(vault.load_tree)
        chosen = {path: entry_at(load, request.goal.tree, path) for path in request.paths}
        for path in untouched:
            if any(is_within(path, one) for one in request.paths):
                chosen[path] = entry_at(load, safety.tree, path)
        digest = amended_tree(vault, safety.tree, chosen)
    if digest is None:
        return target.tree, target.report, target.files, target.size_bytes
    tree = vault.load_tree(digest)
    return digest, safety.report, tree.file_count, tree.size_bytes


def rescue(vault: Vault, journal: Journal, safety: Checkpoint) -> Checkpoint:
    """Staging may hold the only copy of a file that was changed during the restore. Returns a
    safety checkpoint that has it, or else the existing one."""
    from holdfast.engine.restore.conflicts import amended_tree, find_unknown

    target = vault.catalog.checkpoint(journal.session_id, journal.target)
    known = [safety.tree]
    if target is not None:
        known.append(journal.tree or target.tree)
    unsaved = find_unknown(vault, journal, tuple(known))
    if not unsaved:
        return safety
    return add_safety_row(vault, safety, amended_tree(vault, safety.tree, unsaved))


def add_safety_row(
    vault: Vault,
    safety: Checkpoint,
    tree: Digest,
    *,
    intended: dict[str, Intended] | None = None,
) -> Checkpoint:
    """A second safety checkpoint: the first one plus changes during the restore; with `intended`,
    also with the current components."""
    now_ns = vault.clock.now_ns()
    why = f"{safety.intent.reasoning}, with changes made meanwhile"
    identifier, components = CheckpointId(vault.ids.new_id()), safety.components
    if intended is not None:
        captured = capture_components(
            vault, identifier, safety, intended=intended, beyond_budget=True
        )
        components = captured.manifest
    new = NewCheckpoint(
        id=identifier,
        session_id=safety.session_id,
        parent=safety.parent,
        kind=Kind.SAFETY,
        created_at_ns=now_ns,
        tree=tree,
        intent=SnapshotIntent(why, confidence=_CERTAIN),
        files=safety.files,
        size_bytes=safety.size_bytes,
        changed=safety.changed,
        report=safety.report,
        message_index=safety.message_index,
        round=safety.round,
        components=components,
    )
    return _add(vault, new)
