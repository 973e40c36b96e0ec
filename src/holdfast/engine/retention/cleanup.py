"""Cleanup: delete expired checkpoints, then collect unreferenced objects.

    decide → delete rows (one transaction) → mark everything reachable from the rows
    → the object store keeps only that

Guarantee: nothing reachable from a remaining checkpoint is collected (I5). Rows are deleted before
content, so a crash in between leaves garbage, never a checkpoint without its content.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import SavedFirst
from holdfast.domain.retention import Decision, decide, rules_with
from holdfast.domain.trees.changes import tree_changes
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.trees.tree import decode_tree
from holdfast.engine.components.manifests import named_objects, release_components
from holdfast.engine.engine import CLEANUP_EVERY_NS, Engine
from holdfast.engine.retention.protection import protected, states_before_messages
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation, all_checkpoints
from holdfast.ports.progress import Progress

COLLECT_AT_BYTES = 4 << 20
"""If a deleted checkpoint's own content may take this much, it is collected at once."""

STEP_BYTES = 256 << 20
"""Packs of this total size are processed before others can use the store."""

DEBRIS_GRACE_NS = 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """All decisions, and the size of the objects that would become unreferenced."""

    decisions: tuple[Decision, ...]
    unneeded_bytes: int


@dataclass(frozen=True, slots=True)
class CleanupOutcome:
    """The decisions and results; `debris` are removed leftovers of killed processes, and
    `saved_first` has unsaved changes."""

    decisions: tuple[Decision, ...]
    freed_bytes: int
    debris: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    saved_first: CheckpointId | None = None


def plan_cleanup(engine: Engine) -> CleanupPlan:
    """What `cleanup` would do now. Changes nothing."""
    vault = engine.vault
    with engine.recovered(read_only=True):
        decided = decisions(vault)
        kept = (decision.checkpoint for decision in decided if decision.keep)
        needed = mark(vault, kept, set())
        return CleanupPlan(tuple(decided), vault.objects.unneeded_bytes(needed))


def cleanup(
    engine: Engine, progress: Progress, *, asked: bool = True, most_steps: int | None = None
) -> CleanupOutcome:
    """Delete expired checkpoints, free their space step by step, and remove leftovers. If a user
    `asked`, unsaved changes are saved before anything is deleted; that checkpoint changes no
    decision. Otherwise it is the daily cleanup, which does not trust the clock alone.

    Others can use the store between the steps. If it is stopped anywhere, or after `most_steps`,
    the store is sound, and the next cleanup continues.
    """
    vault = engine.vault
    with engine.recovered(required=True):
        decided = decisions(vault, None if asked else confirmed_now_ns(vault))
        going = sum(not decision.keep for decision in decided)
        saved = engine.save_unsaved_work("Cleaned up") if asked and going else SavedFirst()
        drop(vault, decided)
        debris = vault.space.remove_debris(vault.clock.now_ns() - DEBRIS_GRACE_NS)
    freed_bytes, trouble = _collect_in_steps(engine, progress, most_steps)
    now_ns = vault.clock.now_ns()
    vault.space.note_upkeep(cleaned_ns=now_ns, dropped=going, freed_bytes=freed_bytes)
    warnings = (*saved.warnings, *trouble)
    outcome = CleanupOutcome(tuple(decided), freed_bytes, debris, warnings, saved.checkpoint)
    if most_steps is not None:  # part of a save, which updates the mirror
        return outcome
    return engine.with_mirror_warnings(outcome, "everything")


def _collect_in_steps(
    engine: Engine, progress: Progress, most_steps: int | None
) -> tuple[int, tuple[str, ...]]:
    """Returns the bytes freed, and why not more were.

    `known` holds objects that earlier steps found reachable. Since then, checkpoints can only have
    been added, and are marked now, or deleted. Their content then waits for the next cleanup.
    """
    vault = engine.vault
    known: set[Digest] = set()
    freed_bytes = steps = 0
    generation = ""
    try:
        while True:
            with engine.recovered(required=True):
                if vault.objects.generation() != generation:
                    known.clear()  # another collection ran: reachable objects may be gone
                mark(vault, all_checkpoints(vault.catalog), known)
                step_bytes = vault.objects.retain_only(known, limit_bytes=STEP_BYTES)
                generation = vault.objects.generation()
            freed_bytes += step_bytes
            steps += 1
            if step_bytes == 0 or steps == most_steps:
                return freed_bytes, ()
            vault.lock.yield_lock()
            progress.advance("bytes freed", freed_bytes, None)
    except StoreDamaged as error:
        return freed_bytes, (f"no more space was freed: {error.message}",)


def confirmed_now_ns(vault: Vault) -> int:
    """The time by which an automatic cleanup counts ages: that of the previous one, if it was at
    least a day ago; otherwise a time at which nothing was old. If the clock is temporarily far
    ahead, everything looks old. A state is lost only if it still does a day later."""
    last_ns = vault.space.read_upkeep().get("cleaned_ns", 0)
    return last_ns if vault.clock.now_ns() - last_ns >= CLEANUP_EVERY_NS else 0


def drop(vault: Vault, decided: Iterable[Decision]) -> tuple[Decision, ...]:
    """Delete the rows of expired checkpoints in one transaction, then the data that components keep
    alive for them."""
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
        release_components(vault)  # a failure is retried next time
    forget_story(vault)
    return dropped


def _heads_after(vault: Vault, gone: set[CheckpointId]) -> dict[SessionId, CheckpointId | None]:
    """For sessions whose HEAD is deleted: their newest remaining checkpoint, if any."""
    heads: dict[SessionId, CheckpointId | None] = {
        session.id: None for session in vault.catalog.sessions() if session.head in gone
    }
    if heads:
        for checkpoint in all_checkpoints(vault.catalog):  # oldest first
            if checkpoint.session_id in heads and checkpoint.id not in gone:
                heads[checkpoint.session_id] = checkpoint.id
    return heads


def forget_story(vault: Vault) -> None:
    """Delete annotations and edits of deleted checkpoints. Called with the lock held, so that no
    checkpoint is being made. An unreadable story keeps them until it is repaired."""
    if not vault.has_story():
        return
    with contextlib.suppress(StoreDamaged):
        gone = vault.story.named_checkpoints() - {c.id for c in all_checkpoints(vault.catalog)}
        if gone:
            vault.story.forget_checkpoints(sorted(gone))


def decisions(vault: Vault, now_ns: int | None = None) -> list[Decision]:
    """The retention decision for every checkpoint, at this time or now; changes nothing."""
    checkpoints = list(all_checkpoints(vault.catalog))
    if now_ns is None:
        now_ns = vault.clock.now_ns()
    return decide(
        checkpoints,
        now_ns=now_ns,
        protected=protected(vault, checkpoints, now_ns),
        rules=rules_with(vault.settings.retention),
        before_messages=states_before_messages(vault, checkpoints),
    )


def collect(vault: Vault) -> int:
    """Free content that no checkpoint needs; returns the bytes freed."""
    return vault.objects.retain_only(reachable(vault))


def is_worth_collecting(vault: Vault, gone: Checkpoint, near: Iterable[Checkpoint]) -> bool:
    """Whether a deleted checkpoint may have held much content that its neighbours do not.

    The cost depends on their differences, while marking reads every checkpoint.
    """
    own: set[tuple[Digest, int]] | None = None
    for other in near:
        found = tree_changes(vault.load_tree, other.tree, gone.tree)
        differs = {(c.new.digest, c.new.size) for c in found if isinstance(c.new, FileEntry)}
        own = differs if own is None else own & differs
    return own is None or sum(size for _, size in own) >= COLLECT_AT_BYTES


def reachable(vault: Vault) -> set[Digest]:
    """Every object that a checkpoint refers to. A damaged tree stops the collection: its objects
    are unknown, so nothing may be deleted."""
    return mark(vault, all_checkpoints(vault.catalog), set())


def mark(
    vault: Vault,
    checkpoints: Iterable[Checkpoint],
    found: set[Digest],
    read: Callable[[Digest], bytes] | None = None,
) -> set[Digest]:
    """`found` plus everything that these checkpoints refer to; trees in `found` are not entered
    again. `read` may return objects that are not stored yet."""
    for checkpoint in checkpoints:
        _mark(checkpoint, found, read or vault.objects.read)
    return found


def _mark(checkpoint: Checkpoint, found: set[Digest], read: Callable[[Digest], bytes]) -> None:
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
        tree = decode_tree(read(digest))
        for entry in tree.files:
            if entry.chunks is None:
                found.add(entry.digest)
            elif entry.chunks not in found:
                found.add(entry.chunks)
                found.update(piece.digest for piece in decode_chunk_list(read(entry.chunks)))
        pending += [entry.digest for entry in tree.directories]
