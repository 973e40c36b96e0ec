"""Cleanup: delete expired checkpoints, then collect unreferenced objects.

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
from holdfast.engine.retention.protection import protected, states_before_messages
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.ports.progress import Progress

COLLECT_AT_BYTES = 4 << 20
"""A deleted checkpoint whose own content may take this much is worth collecting at once."""

STEP_BYTES = 256 << 20
"""Packs of this size are looked at before others get their turn with the store."""

DEBRIS_GRACE_NS = 3600 * 1_000_000_000
CLEANUP_EVERY_NS = 24 * DEBRIS_GRACE_NS


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """Every decision, and the size of objects that would be unreferenced afterwards."""

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
    needed = mark(vault, kept, set())
    return CleanupPlan(tuple(decided), vault.objects.unneeded_bytes(needed))


def cleanup(
    vault: Vault,
    locked: Callable[[], AbstractContextManager[object]],
    progress: Progress,
    *,
    asked: bool = True,
    most_steps: int | None = None,
    save_first: Callable[[], SavedFirst] = SavedFirst,
) -> CleanupOutcome:
    """Delete expired checkpoints, free their space step by step, and remove leftovers. `save_first`
    is called when anything is to go; what it saves changes no decision. Without `asked` it does not
    trust the clock alone.

    Others get their turn between the steps. Cut off anywhere, or after `most_steps`, it leaves a
    sound store, and goes on the next time.
    """
    with locked():
        decided = decisions(vault, None if asked else confirmed_now_ns(vault))
        going = sum(not decision.keep for decision in decided)
        saved = save_first() if going else SavedFirst()
        drop(vault, decided)
        debris = vault.space.remove_debris(vault.clock.now_ns() - DEBRIS_GRACE_NS)
    freed_bytes, trouble = _collect_in_steps(vault, locked, progress, most_steps)
    now_ns = vault.clock.now_ns()
    vault.space.note_upkeep(cleaned_ns=now_ns, dropped=going, freed_bytes=freed_bytes)
    warnings = (*saved.warnings, *trouble)
    return CleanupOutcome(tuple(decided), freed_bytes, debris, warnings, saved.checkpoint)


def _collect_in_steps(
    vault: Vault,
    locked: Callable[[], AbstractContextManager[object]],
    progress: Progress,
    most_steps: int | None,
) -> tuple[int, tuple[str, ...]]:
    """The bytes freed, and why not more were.

    `known` carries what earlier steps found to be reachable. Meanwhile checkpoints can only have
    been added, which are marked now, or dropped, whose content then waits for the next cleanup.
    """
    known: set[Digest] = set()
    freed_bytes = steps = 0
    generation = ""
    try:
        while True:
            with locked():
                if vault.objects.generation() != generation:
                    known.clear()  # others have collected: what was reachable may be gone since
                mark(vault, vault.catalog.roots(), known)
                step_bytes = vault.objects.retain_only(known, limit_bytes=STEP_BYTES)
                generation = vault.objects.generation()
            freed_bytes += step_bytes
            steps += 1
            if step_bytes == 0 or steps == most_steps:
                return freed_bytes, ()
            vault.lock.let_others_in()
            progress.advance("bytes freed", freed_bytes, None)
    except StoreDamaged as error:
        return freed_bytes, (f"no more space was freed: {error.message}",)


def confirmed_now_ns(vault: Vault) -> int:
    """Up to when an unasked cleanup counts ages: the time of the last one, if that was at least a
    day ago, else a time at which nothing was old. A clock that is far ahead for a while makes
    everything look old, and costs a state only if it still is so a day later."""
    last_ns = vault.space.read_upkeep().get("cleaned_ns", 0)
    return last_ns if vault.clock.now_ns() - last_ns >= CLEANUP_EVERY_NS else 0


def drop(vault: Vault, decided: Iterable[Decision]) -> tuple[Decision, ...]:
    """Delete the rows of expired checkpoints in one transaction, and then the data that components
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
        release_components(vault)  # the next time releases the rest
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
        protected=protected(vault, checkpoints, now_ns),
        rules=rules_with(vault.settings.retention),
        before_messages=states_before_messages(vault, checkpoints),
    )


def collect(vault: Vault) -> int:
    """Free the content that no checkpoint needs; returns the bytes that gives back."""
    return vault.objects.retain_only(reachable(vault))


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
    return mark(vault, vault.catalog.roots(), set())


def mark(
    vault: Vault,
    checkpoints: Iterable[Checkpoint],
    found: set[Digest],
    read: Callable[[Digest], bytes] | None = None,
) -> set[Digest]:
    """`found`, with everything that these checkpoints name; trees that are in it already are not
    entered. `read` may know objects that are not stored yet."""
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
