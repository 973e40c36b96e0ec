"""Making room: drop checkpoints that the retention rules let go, then collect what nobody needs.

    decide → delete rows (one transaction) → mark everything that rows and the journal reach
    → the object store keeps just that

Guarantee: nothing reachable from a remaining checkpoint is collected (I5); rows go before content,
so a crash in between leaves garbage, never a checkpoint without its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.domain.changes import TreeLoader
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.chunk_lists import decode_chunk_list
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest
from holdfast.domain.operations import OperationKind
from holdfast.domain.retention import Decision, decide, protections
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation


@dataclass(frozen=True, slots=True)
class PruneOutcome:
    """What was dropped, with the reasons, and the space that gave back."""

    dropped: tuple[Decision, ...]
    freed_bytes: int


def prune(vault: Vault) -> PruneOutcome:
    """Called with the store's lock held."""
    dropped = tuple(d for d in decisions(vault) if not d.keep)
    if dropped:
        with vault.catalog.transaction() as transaction:
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
    return PruneOutcome(dropped, collect(vault))


def decisions(vault: Vault) -> list[Decision]:
    return decide(vault.catalog.roots(), now_ns=vault.clock.now_ns(), protected=_protected(vault))


def collect(vault: Vault) -> int:
    """Free the content that no checkpoint needs; returns the bytes that gives back."""
    return vault.objects.retain_only(reachable(vault))


def reachable(vault: Vault) -> set[Digest]:
    """Every object that a checkpoint names. A damaged tree stops everything: what it named is
    unknown, so nothing may go."""
    return reachable_from(vault, vault.catalog.roots(), vault.load_tree)


def reachable_from(
    vault: Vault, checkpoints: Iterable[Checkpoint], load: TreeLoader
) -> set[Digest]:
    """Every object that these checkpoints name; `load` may know trees that nobody stored yet."""
    found: set[Digest] = set()
    for checkpoint in checkpoints:
        _mark(vault, checkpoint, found, load)
    return found


def _mark(vault: Vault, checkpoint: Checkpoint, found: set[Digest], load: TreeLoader) -> None:
    if checkpoint.report is not None:
        found.add(checkpoint.report)
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


def _protected(vault: Vault) -> set[CheckpointId]:
    """HEAD, the first and the approved checkpoint of each session, what undo and redo need."""
    if vault.access.read_journal() is not None:
        raise StoreDamaged("a restore is unfinished; nothing is dropped before it is put right")
    return set(protection_reasons(vault))


def protection_reasons(vault: Vault) -> dict[CheckpointId, str]:
    """Every protected checkpoint of the store, with the reason."""
    reasons: dict[CheckpointId, str] = {}
    for session in vault.catalog.sessions():
        first = vault.catalog.first_checkpoint(session.id)
        operations = vault.catalog.operations(session.id)
        reasons |= protections(session, first.id if first else None, operations)
    return reasons
