"""Finds damaged content in a store, and repairs it as far as possible.

    find:   unreadable objects → paths in checkpoints lost because of them → those of them that the
            workspace still has → whole states that no checkpoint refers to
    repair: store again what the workspace has → drop unreadable objects → rewrite damaged packs
            → give unnamed states a checkpoint → reduce checkpoints to what is left of them

Every step is durable on its own and found again if it is interrupted, so a repair can be repeated
at any time. Nothing is deleted: replaced packs, rows and journals are quarantined first.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace

from holdfast.domain.checkpoints import (
    ChangeCounts,
    Checkpoint,
    Kind,
    NewCheckpoint,
    Skipped,
    SkipReason,
)
from holdfast.domain.component_states import ComponentState, encode_manifest
from holdfast.domain.errors import HoldfastError, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import basename, to_text
from holdfast.domain.repair_plan import ALL_COMPONENTS, DamagedState, UnnamedState
from holdfast.domain.sessions import Session
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import decode_tree
from holdfast.engine.components.manifests import read_states
from holdfast.engine.repair.check import DamagedCheckpoint, LossFinder, journal_problem
from holdfast.engine.restore.conflicts import amended_tree
from holdfast.engine.restore.directory_handles import DirectoryHandles, leftovers, staging_prefix
from holdfast.engine.restore.journal import decode_journal
from holdfast.engine.restore.permissions import restore_noted_modes
from holdfast.engine.restore.plan import read_report
from holdfast.engine.restore.records import rescue
from holdfast.engine.restore.recovery import put_modes_back
from holdfast.engine.save.workspace_tree import add_report, capture_policy
from holdfast.engine.scan.scanner import Scanner, ScanRequest
from holdfast.engine.stored_objects import object_batch
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation, all_checkpoints
from holdfast.ports.objects import ObjectWriter, WriteTotals, all_digests

RECOVERED = SessionId("recovered")
_TREE, _CHUNK_LIST = b"HFT1", b"HFC1"


@dataclass(frozen=True, slots=True)
class ContentFindings:
    """Damage to content; `healable` are lost objects that the workspace still has."""

    packs: tuple[tuple[int, str], ...]
    lost: frozenset[Digest]
    healable: frozenset[Digest]
    damaged: tuple[DamagedCheckpoint, ...]
    unnamed: tuple[UnnamedState, ...]
    journal: str | None

    @property
    def damaged_states(self) -> tuple[DamagedState, ...]:
        return tuple(
            DamagedState(d.id, _lost_paths(d), d.components_lost, d.is_gone) for d in self.damaged
        )


def find_damage(vault: Vault, *, history_is_incomplete: bool) -> ContentFindings:
    """Called with the store's lock held; changes nothing."""
    unreadable = vault.objects.unreadable()

    def unheld(digest: Digest) -> bool:
        return digest in unreadable or not vault.objects.contains(digest)

    lost = set(unreadable)
    found: dict[Digest, bytes] | None = None
    present: dict[Digest, bytes] = {}
    while True:
        after = LossFinder(vault, unreadable, present)
        rows = all_checkpoints(vault.catalog)
        damaged = [d for c in rows if (d := after.damage_of(c)) is not None]
        lost |= after.lost
        if found is None:
            found = _in_workspace(vault, unheld) if lost else {}
        if len(present) == len(lost & found.keys()):
            break
        # A recovered directory or chunk list may refer to further lost objects.
        present = {digest: found[digest] for digest in lost & found.keys()}
    unnamed = _unnamed(vault, after.trees) if history_is_incomplete else ()
    return ContentFindings(
        tuple(sorted(vault.open_packs().damaged_packs().items())),
        frozenset(lost),
        frozenset(present),
        tuple(damaged),
        tuple(unnamed),
        journal_problem(vault),
    )


def repair_damage(vault: Vault, occasion: str, *, history_is_incomplete: bool) -> None:
    """Called with the store's lock held, on a store that opens."""
    _heal(vault, find_damage(vault, history_is_incomplete=False))
    unreadable = vault.objects.unreadable()
    if unreadable:
        vault.objects.forget(unreadable)
    vault.open_packs().mend_packs(occasion)
    if history_is_incomplete:
        _name(vault, find_damage(vault, history_is_incomplete=True).unnamed)
    found = find_damage(vault, history_is_incomplete=False)
    if found.damaged:
        _note_rows(vault, occasion, found.damaged)
        for damage in found.damaged:
            _mark(vault, damage)
    if found.journal is not None:
        _save_staging_content(vault)
        _quarantine_staging(vault, occasion)
        vault.journal.quarantine(occasion)


class _CollectingWriter:
    """A writer that accepts only wanted objects; stores them, or only collects them."""

    def __init__(
        self, wanted: Callable[[Digest], bool], writer: ObjectWriter | None = None
    ) -> None:
        self._wanted = wanted
        self._writer = writer
        self.found: dict[Digest, bytes] = {}

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        if not self._wanted(digest):
            return False
        self.found[digest] = data if data.startswith((_TREE, _CHUNK_LIST)) else b""
        return self._writer.add(digest, data) if self._writer is not None else False

    def commit(self) -> WriteTotals:
        return WriteTotals()

    def abandon(self) -> None:
        return None


def _in_workspace(
    vault: Vault, lost: Callable[[Digest], bool], writer: ObjectWriter | None = None
) -> dict[Digest, bytes]:
    """Lost objects that a scan of every file in the workspace finds again."""
    collecting = _CollectingWriter(lost, writer)
    try:
        with vault.open_root() as root_fd:
            scanner = Scanner(vault.fs, vault.objects, None, databases=vault.databases)
            request = ScanRequest(capture_policy(vault), collecting, vault.clock.now_ns())
            scan = scanner.scan(root_fd, request, generation="repair")
        add_report(collecting, scan.skipped)  # often the same as before
    except (HoldfastError, OSError):
        return collecting.found  # a missing or inaccessible workspace heals nothing
    return collecting.found


def _heal(vault: Vault, found: ContentFindings) -> None:
    if not found.healable:
        return
    held = [digest for digest in found.healable if vault.objects.contains(digest)]
    vault.objects.forget(held)
    with object_batch(vault.objects) as writer:
        _in_workspace(vault, found.healable.__contains__, writer)


def _unnamed(vault: Vault, named: set[Digest]) -> list[UnnamedState]:
    """Root trees that nothing refers to: the state of a lost row, or of a killed save."""
    trees: dict[Digest, UnnamedState] = {}
    below: set[Digest] = set()
    every_object = vault.objects.read_many(all_digests(vault.objects), skip_unreadable=True)
    for digest, data in every_object:
        try:
            tree = decode_tree(data) if data.startswith(_TREE) else None
        except StoreDamaged:
            continue
        if tree is None:
            continue
        below.update(entry.digest for entry in tree.directories)
        if digest not in named:
            trees[digest] = UnnamedState(digest, tree.file_count)
    return [state for digest, state in sorted(trees.items()) if digest not in below]


def _name(vault: Vault, states: Collection[UnnamedState]) -> None:
    """Create checkpoints for states that lost theirs, in a new session."""
    for state in states:
        tree = vault.load_tree(state.tree)
        now_ns = vault.clock.now_ns()
        session = vault.catalog.session(RECOVERED)
        new = NewCheckpoint(
            id=CheckpointId(vault.ids.new_id()),
            session_id=RECOVERED,
            parent=session.head if session is not None else None,
            kind=Kind.MANUAL,
            created_at_ns=now_ns,
            tree=state.tree,
            intent=SnapshotIntent(
                "Recovered by repair: a state whose checkpoint is lost", tags=("recovered",)
            ),
            files=tree.file_count,
            size_bytes=tree.size_bytes,
            changed=ChangeCounts(),
            partial=True,
        )
        with vault.catalog.transaction() as transaction:
            if session is None:
                transaction.add_session(Session(RECOVERED, now_ns))
            transaction.add_checkpoint(new)
            transaction.add_operation(
                NewOperation(OperationKind.REPAIR, RECOVERED, now_ns, checkpoint=new.id)
            )
            transaction.set_head(RECOVERED, new.id)


def _lost_paths(damage: DamagedCheckpoint) -> tuple[bytes, ...]:
    paths = tuple(loss.path for loss in damage.losses)
    return (*paths, b"") if damage.report_lost else paths


def _note_rows(vault: Vault, occasion: str, damaged: Collection[DamagedCheckpoint]) -> None:
    """Quarantine the old rows: if lost content is found again, they say what it was."""
    rows = []
    lost = {damage.id: [to_text(path) for path in _lost_paths(damage)] for damage in damaged}
    for checkpoint in all_checkpoints(vault.catalog):
        if checkpoint.id in lost:
            row = asdict(checkpoint) | {"lost": lost[checkpoint.id]}
            rows.append(json.loads(json.dumps(row, default=lambda b: b.hex())))
    data = json.dumps({"checkpoints": rows}, indent=1).encode()
    vault.parts.quarantine.add_note(occasion, "damaged-checkpoints.json", data)


def _mark(vault: Vault, damage: DamagedCheckpoint) -> None:
    checkpoint = vault.catalog.checkpoint(None, damage.id)
    assert checkpoint is not None  # `find_damage` read it under the same lock
    if damage.is_gone:
        _drop(vault, checkpoint)
        return
    tree = checkpoint.tree
    if damage.losses:
        tree = amended_tree(vault, tree, {loss.path: None for loss in damage.losses})
    left_out = [] if damage.report_lost else read_report(vault, checkpoint)
    left_out += [Skipped(path, SkipReason.LOST) for path in _lost_paths(damage)]
    with object_batch(vault.objects) as writer:
        report = add_report(writer, left_out)
        components = _components_left(vault, writer, checkpoint, damage.components_lost)
    left = vault.load_tree(tree)
    what_is_left = replace(
        checkpoint,
        tree=tree,
        report=report,
        files=left.file_count,
        size_bytes=left.size_bytes,
        partial=True,
        components=components,
    )
    with vault.catalog.transaction() as transaction:
        transaction.replace_checkpoint(what_is_left)


def _components_left(
    vault: Vault, writer: ObjectWriter, checkpoint: Checkpoint, lost: Collection[str]
) -> Digest | None:
    """The manifest without lost content; the lost parts are marked."""
    if not lost:
        return checkpoint.components
    states: tuple[ComponentState, ...] = ()
    if ALL_COMPONENTS not in lost:
        states = read_states(vault.objects, checkpoint)
    left = [s for s in states if s.name not in lost]
    left += [ComponentState(name, failure=SkipReason.LOST.value) for name in lost]
    data = encode_manifest(tuple(left))
    digest = digest_of(data)
    writer.add(digest, data)
    return digest


def _drop(vault: Vault, checkpoint: Checkpoint) -> None:
    session = vault.catalog.session(checkpoint.session_id)
    with vault.catalog.transaction() as transaction:
        if session is not None and session.head == checkpoint.id:
            transaction.set_head(session.id, checkpoint.parent)
        transaction.remove_checkpoint(checkpoint.id)
        transaction.add_operation(
            NewOperation(
                OperationKind.LOST,
                checkpoint.session_id,
                vault.clock.now_ns(),
                checkpoint=checkpoint.id,
            )
        )


def _save_staging_content(vault: Vault) -> None:
    """Best effort: save into the safety checkpoint of the abandoned restore, with the modes that
    directories had. Content that cannot be saved is quarantined with the rest."""
    with contextlib.suppress(OSError, HoldfastError):
        journal = decode_journal(vault.journal.read() or b"")
        safety = vault.catalog.checkpoint(journal.session_id, journal.safety)
        if safety is not None:
            with contextlib.suppress(OSError, HoldfastError):
                rescue(vault, journal, safety)
        put_modes_back(vault, journal.modes)
    with contextlib.suppress(OSError, HoldfastError):
        restore_noted_modes(vault, lambda path: None)
    vault.journal.remove_note()


def _quarantine_staging(vault: Vault, occasion: str) -> None:
    """Without its journal, it is unknown which path a slot belongs to, but its bytes may be the
    only copy. For an encrypted store they stay in the workspace, where they were already readable,
    under a name that no restore uses. Staged content of another store is left alone: it is in use,
    or waits for that store's repair."""
    try:
        with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
            found = [*leftovers(vault, handles), *_staged_on_other_mounts(vault)]
    except (OSError, HoldfastError):
        return  # a missing or inaccessible workspace
    for path in found:
        source = os.path.join(os.fsencode(vault.workspace), path)
        beside = os.path.join(os.path.dirname(source), b"set-aside-" + occasion.encode())
        if not vault.files.is_sealed():
            place = os.fsencode(vault.parts.quarantine.new_directory(occasion))
            with contextlib.suppress(OSError):  # on another file system, moving means reading
                os.rename(source, os.path.join(place, basename(path)))
                continue
        os.makedirs(beside, 0o700, exist_ok=True)
        os.rename(source, os.path.join(beside, basename(path)))


def _staged_on_other_mounts(vault: Vault) -> list[bytes]:
    """Restores stage at the top of each file system that they change."""
    found = []
    prefix, workspace = staging_prefix(vault), os.path.realpath(os.fsencode(vault.workspace))
    for top in vault.fs.mount_points_below(os.fsencode(vault.workspace)):
        with contextlib.suppress(OSError):
            found += [
                os.path.relpath(os.path.join(top, name), workspace)
                for name in os.listdir(top)
                if name.startswith(prefix) and os.path.isdir(os.path.join(top, name))
            ]
    return found
