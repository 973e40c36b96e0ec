"""Statistics of a session and of its workspace's store.

Deduplication counts whole files, in the order in which states were saved: content that an earlier
state of any session had was already stored. Subtrees of earlier states are not read again.

Usage is counted from the operation log on demand. Nothing is recorded for it, and nothing leaves
the machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest, SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.sessions.overview import listed_sessions
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints
from holdfast.values.classes import dataclass

_PAGE = 500
_MOST_POINTS = 120
_LONGEST_RESTORE_NS = 3600 * 10**9
_MOST_SAVED_NS = 3600 * 10**9
"""Per restore: people rarely redo more than an hour of work from memory."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How the checkpoints of a workspace are used. `restores` counts restores, resets, undos and
    redos. `saved_ns` estimates the time they saved: for each except redos, the time since the
    restored state was saved, one hour at most."""

    sessions: int
    sessions_with_restores: int
    sessions_with_manual_checkpoints: int
    restores: dict[OperationKind, int]
    saved_ns: int


def session_statistics(vault: Vault, session_id: SessionId) -> dict[str, int]:
    counts = vault.catalog.counts(session_id)
    return {
        "checkpoints": counts.checkpoints,
        "restores": counts.restores,
        "bytes_stored": vault.objects.size_bytes(),
        "bytes_deduped": _bytes_deduped(vault, session_id),
        "snapshots": counts.checkpoints + counts.records,
        "content_blobs": vault.objects.count(),
    }


def _bytes_deduped(vault: Vault, session_id: SessionId) -> int:
    """Damaged states count as nothing. So do restore records, because they save no files."""
    newest = vault.catalog.history(session_id, limit=1, records=True)
    if not newest:
        return 0
    known: set[Digest] = set()
    deduped = 0
    for one in all_checkpoints(vault.catalog):
        if one.sequence > newest[0].sequence:
            break
        if one.kind is Kind.RESTORE:
            continue
        try:
            new = sum(file.size for _, file in _new_objects(vault, one.tree, known) if file)
        except StoreDamaged:
            continue
        if one.session_id == session_id:
            deduped += max(one.size_bytes - new, 0)
    return deduped


def content_growth(vault: Vault) -> list[tuple[int, int]]:
    """How the store grew: each checkpoint's time in nanoseconds, and the bytes stored up to it.
    Without deleted checkpoints. Limited to the points that a chart can show, always with the last
    one."""
    sizes = dict(vault.objects.stored_sizes())
    known: set[Digest] = set()
    total = 0
    points: list[tuple[int, int]] = []
    for one in all_checkpoints(vault.catalog):
        try:
            new = [digest for digest, _ in _new_objects(vault, one.tree, known)]
        except StoreDamaged:
            continue
        total += sum(sizes.get(digest, 0) for digest in new)
        points.append((one.created_at_ns, total))
    step = max(1, -(-len(points) // _MOST_POINTS))
    return points[::-1][::step][::-1]


def _new_objects(
    vault: Vault, tree: Digest, known: set[Digest]
) -> Iterator[tuple[Digest, FileEntry | None]]:
    """The objects of a tree that are not in `known`, files with their entries; adds them to it."""
    if tree in known:
        return
    found = vault.load_tree(tree)
    for directory in found.directories:
        yield from _new_objects(vault, directory.digest, known)
    for file in found.files:
        if file.digest not in known:
            known.add(file.digest)
            yield file.digest, file
    known.add(tree)
    yield tree, None


def restore_times_ns(vault: Vault, most: int) -> list[int]:
    """How long the last restores of any process took, newest first: from their safety checkpoint
    to the verified result. Without those whose safety checkpoint has expired, and those that were
    interrupted and finished later."""
    found = []
    for operation in vault.catalog.operations_before(None, most, kinds=RESTORING_KINDS):
        safety = vault.catalog.checkpoint(None, operation.safety)
        if safety is not None and 0 <= operation.at_ns - safety.created_at_ns < _LONGEST_RESTORE_NS:
            found.append(operation.at_ns - safety.created_at_ns)
    return found


def workspace_usage(vault: Vault) -> Usage:
    catalog = vault.catalog
    sessions = [one.id for one in listed_sessions(vault)]
    counted = dict.fromkeys(RESTORING_KINDS, 0)
    restoring: set[SessionId] = set()
    saved_ns = 0
    for operation in _restores(vault):
        counted[operation.kind] += 1
        restoring.add(operation.session_id)
        if operation.kind is not OperationKind.REDO:
            saved_ns += _saved_ns(vault, operation)
    return Usage(
        sessions=len(sessions),
        sessions_with_restores=len(restoring & set(sessions)),
        sessions_with_manual_checkpoints=sum(
            bool(catalog.count(one, (Kind.MANUAL,))) for one in sessions
        ),
        restores=counted,
        saved_ns=saved_ns,
    )


def _restores(vault: Vault) -> Iterator[Operation]:
    before: int | None = None
    while page := vault.catalog.operations_before(before, _PAGE, kinds=RESTORING_KINDS):
        yield from page
        before = page[-1].sequence


def _saved_ns(vault: Vault, operation: Operation) -> int:
    record = vault.catalog.checkpoint(None, operation.checkpoint)
    target = vault.catalog.checkpoint(None, record.restores_from) if record else None
    if target is None:
        return 0
    return min(max(operation.at_ns - target.created_at_ns, 0), _MOST_SAVED_NS)
