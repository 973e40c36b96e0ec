"""Making room: drop checkpoints that the retention rules let go, then collect what nobody needs.

    decide → delete rows (one transaction) → mark everything that rows and the journal reach
    → the object store keeps just that

Guarantee: nothing reachable from a remaining checkpoint is collected (I5); rows go before content,
so a crash in between leaves garbage, never a checkpoint without its content.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import SavedFirst
from holdfast.domain.retention import Decision, decide, protections, rules_with
from holdfast.domain.trees.changes import TreeLoader, tree_changes
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.engine.components.manifests import named_objects, release_components
from holdfast.engine.retention.recent_work import recent_sessions, states_before_messages
from holdfast.engine.retention.schedule import confirmed_now_ns
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.ports.progress import Progress

COLLECT_AT_BYTES = 4 << 20
"""A deleted checkpoint whose own content may take this much is worth collecting at once."""

STEP_BYTES = 256 << 20
"""Packs of this size are looked at before others get their turn with the store."""

DEBRIS_GRACE_NS = 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """Every decision, and what objects take that nobody would need afterwards."""

    decisions: tuple[Decision, ...]
    unneeded_bytes: int


@dataclass(frozen=True, slots=True)
class CleanupOutcome:
    """What was decided and done; `debris` are leftovers of killed processes that are gone, and
    `saved_first` has what was unsaved."""

    decisions: tuple[Decision, ...]
    freed_bytes: int
    debris: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    saved_first: CheckpointId | None = None


def plan_cleanup(vault: Vault) -> CleanupPlan:
    """What `drop` and `collect` would do now; called with the store's lock held."""
    decided = decisions(vault)
    kept = (decision.checkpoint for decision in decided if decision.keep)
    needed = reachable_from(vault, kept, vault.load_tree)
    return CleanupPlan(tuple(decided), vault.objects.unneeded_bytes(needed))


def cleanup(
    vault: Vault,
    exclusive: Callable[[], AbstractContextManager[object]],
    progress: Progress,
    *,
    asked: bool = True,
    most_steps: int | None = None,
    save_first: Callable[[], SavedFirst] = SavedFirst,
) -> CleanupOutcome:
    """Drop what the rules let go, free its space step by step, and clear debris away. `save_first`
    is called when anything is to go; what it saves changes no decision. What was not `asked` for
    does not trust the clock alone.

    Others get their turn between the steps. Cut off anywhere, or after `most_steps`, it leaves a
    sound store, and goes on the next time.
    """
    outcome = _cleanup(vault, exclusive, progress, asked, most_steps, save_first)
    vault.space.note_upkeep(
        cleaned_ns=vault.clock.now_ns(),
        dropped=sum(not decision.keep for decision in outcome.decisions),
        freed_bytes=outcome.freed_bytes,
    )
    return outcome


def _cleanup(
    vault: Vault,
    exclusive: Callable[[], AbstractContextManager[object]],
    progress: Progress,
    asked: bool,
    most_steps: int | None,
    save_first: Callable[[], SavedFirst],
) -> CleanupOutcome:
    with exclusive():
        decided = decisions(vault, None if asked else confirmed_now_ns(vault))
        going = any(not decision.keep for decision in decided)
        saved = save_first() if going else SavedFirst()
        drop(vault, decided)
        debris = vault.space.remove_debris(vault.clock.now_ns() - DEBRIS_GRACE_NS)
    known: set[Digest] = set()
    freed = step = steps = 0
    generation = ""
    try:
        while True:
            with exclusive():
                if vault.objects.generation() != generation:
                    known.clear()  # others have collected: what was reachable may be gone since
                step = collect_some(vault, known)
                generation = vault.objects.generation()
            steps += 1
            if step == 0 or steps == most_steps:
                freed += step
                return CleanupOutcome(
                    tuple(decided), freed, debris, saved.warnings, saved.checkpoint
                )
            freed += step
            vault.lock.let_others_in()
            progress.advance("bytes freed", freed, None)
    except StoreDamaged as error:
        warning = f"no more space was freed: {error.message}"
        warnings = (*saved.warnings, warning)
        return CleanupOutcome(tuple(decided), freed, debris, warnings, saved.checkpoint)


def drop(vault: Vault, decided: Iterable[Decision]) -> tuple[Decision, ...]:
    """Take the rows away that the rules let go, all in one transaction, and then what components
    keep alive for them."""
    dropped = tuple(decision for decision in decided if not decision.keep)
    if dropped:
        heads = _heads_after(vault, {decision.checkpoint.id for decision in dropped})
        with vault.catalog.transaction() as transaction:
            for session_id, head in heads.items():
                transaction.set_head(session_id, head)
            for decision in dropped:
                gone = decision.checkpoint
                transaction.remove_checkpoint(gone.id)
                transaction.add_operation(
                    NewOperation(
                        OperationKind.PRUNE,
                        gone.session_id,
                        vault.clock.now_ns(),
                        checkpoint=gone.id,
                    )
                )
        release_components(vault)  # what cannot be let go now is let go the next time
    forget_story(vault)
    return dropped


def _heads_after(vault: Vault, gone: set[CheckpointId]) -> dict[SessionId, CheckpointId | None]:
    """For sessions whose HEAD goes: the newest checkpoint that they keep, if any."""
    heads: dict[SessionId, CheckpointId | None] = {
        session.id: None for session in vault.catalog.sessions() if session.head in gone
    }
    if heads:
        for checkpoint in vault.catalog.roots():  # oldest first
            if checkpoint.session_id in heads and checkpoint.id not in gone:
                heads[checkpoint.session_id] = checkpoint.id
    return heads


def forget_story(vault: Vault) -> None:
    """Annotations and edits of checkpoints that are gone go too; called with the lock held, so that
    no checkpoint is being made. A story that cannot be read keeps them until it is repaired."""
    if not vault.has_story():
        return
    with contextlib.suppress(StoreDamaged):
        gone = vault.story.named_checkpoints() - {c.id for c in vault.catalog.roots()}
        if gone:
            vault.story.forget_checkpoints(sorted(gone))


def decisions(vault: Vault, now_ns: int | None = None) -> list[Decision]:
    """What the rules say about every checkpoint, at this time or, without one, by the clock;
    nothing is changed."""
    checkpoints = list(vault.catalog.roots())
    if now_ns is None:
        now_ns = vault.clock.now_ns()
    return decide(
        checkpoints,
        now_ns=now_ns,
        protected=_of_recent_sessions(vault, checkpoints, now_ns) | _protected(vault),
        rules=rules_with(vault.settings.retention),
        before_messages=states_before_messages(vault, checkpoints),
    )


def _of_recent_sessions(
    vault: Vault, checkpoints: Iterable[Checkpoint], now_ns: int
) -> dict[CheckpointId, str]:
    recent = recent_sessions(vault, now_ns)
    why = "its session was active in the last 24 hours"
    return {one.id: why for one in checkpoints if one.session_id in recent}


def collect(vault: Vault) -> int:
    """Free the content that no checkpoint needs; returns the bytes that gives back."""
    return vault.objects.retain_only(reachable(vault))


def collect_some(vault: Vault, known: set[Digest]) -> int:
    """One step of a collection, with the lock held; 0 when there is nothing left to do.

    `known` carries what earlier steps found to be reachable. Meanwhile checkpoints can only have
    been added, which are marked now, or dropped, whose content then waits for the next cleanup.
    """
    mark(vault, vault.catalog.roots(), vault.load_tree, known)
    return vault.objects.retain_only(known, limit_bytes=STEP_BYTES)


def is_worth_collecting(vault: Vault, gone: Checkpoint, near: Iterable[Checkpoint]) -> bool:
    """Whether a dropped checkpoint may have held much that its neighbours do not hold.

    Costs what differs between them, where marking costs every checkpoint there is.
    """
    own: set[tuple[Digest, int]] | None = None
    for other in near:
        found = tree_changes(vault.load_tree, other.tree, gone.tree)
        differs = {(c.new.digest, c.new.size) for c in found if isinstance(c.new, FileEntry)}
        own = differs if own is None else own & differs
    return own is None or sum(size for _, size in own) >= COLLECT_AT_BYTES


def reachable(vault: Vault) -> set[Digest]:
    """Every object that a checkpoint names. A damaged tree stops everything: what it named is
    unknown, so nothing may go."""
    return reachable_from(vault, vault.catalog.roots(), vault.load_tree)


def reachable_from(
    vault: Vault,
    checkpoints: Iterable[Checkpoint],
    load: TreeLoader,
    read: Callable[[Digest], bytes] | None = None,
) -> set[Digest]:
    """Every object that these checkpoints name; `load` may know trees that are not stored yet, and
    `read` any other object."""
    found: set[Digest] = set()
    for checkpoint in checkpoints:
        _mark(vault, checkpoint, found, load, read or vault.objects.read)
    return found


def mark(
    vault: Vault, checkpoints: Iterable[Checkpoint], load: TreeLoader, found: set[Digest]
) -> None:
    """Add what these checkpoints name to `found`, passing over trees that are in it already."""
    for checkpoint in checkpoints:
        _mark(vault, checkpoint, found, load, vault.objects.read)


def _mark(
    vault: Vault,
    checkpoint: Checkpoint,
    found: set[Digest],
    load: TreeLoader,
    read: Callable[[Digest], bytes],
) -> None:
    if checkpoint.report is not None:
        found.add(checkpoint.report)
    if checkpoint.components is not None and checkpoint.components not in found:
        found.update(named_objects(read, checkpoint.components))
    pending = [checkpoint.tree]
    while pending:
        digest = pending.pop()
        if digest in found:
            continue
        found.add(digest)
        tree = load(digest)
        for entry in tree.files:
            if entry.chunks is None:
                found.add(entry.digest)
            elif entry.chunks not in found:
                found.add(entry.chunks)
                pieces = decode_chunk_list(vault.objects.read(entry.chunks))
                found.update(piece.digest for piece in pieces)
        pending += [entry.digest for entry in tree.directories]


def _protected(vault: Vault) -> dict[CheckpointId, str]:
    """HEAD, the first and the approved checkpoint of each session, what undo and redo need, and
    what somebody wrote about."""
    if vault.journal.read() is not None:
        raise StoreDamaged("a restore is unfinished; nothing is dropped before it is put right")
    return annotated(vault) | protection_reasons(vault)


def annotated(vault: Vault) -> dict[CheckpointId, str]:
    """An annotated checkpoint is never dropped. Where the annotations cannot be read, any
    checkpoint may be annotated."""
    if not vault.has_story():
        return {}
    try:
        return {
            note.checkpoint_id: "it is annotated"
            for session in vault.catalog.sessions()
            for note in vault.story.annotations(session.id)
        }
    except StoreDamaged:
        why = "it may be annotated, and the annotations cannot be read (run: holdfast repair)"
        return {one.id: why for one in vault.catalog.roots()}


def protection_reasons(vault: Vault) -> dict[CheckpointId, str]:
    """Every protected checkpoint of the store, with the reason."""
    reasons: dict[CheckpointId, str] = {}
    for session in vault.catalog.sessions():
        first = vault.catalog.first_checkpoint(session.id)
        operations = vault.catalog.operations(session.id)
        reasons |= protections(session, first.id if first else None, operations)
    return open_edits(vault) | reasons


def open_edits(vault: Vault) -> dict[CheckpointId, str]:
    """What an edit or attempt that has not ended would go back to."""
    if not vault.has_story():
        return {}
    try:
        begun = vault.story.open_activities()
    except StoreDamaged:
        why = "an edit may need it: the story of the store cannot be read"
        return {c.id: why for c in vault.catalog.roots() if c.kind in (Kind.SAFETY, Kind.TOOL)}
    return {a.checkpoint: f"an {a.kind.value} has not ended ({a.reason:.60})" for a in begun}
