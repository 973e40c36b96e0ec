"""Selects a bundle's content: checkpoints that do not need the rest of the store, and objects.

A parent that is not selected is replaced by its nearest selected ancestor, as if it were deleted.
The walk through the trees lists every object once, after all objects that it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.domain.bundles.inventory import Role
from holdfast.domain.bundles.story import exportable_rounds
from holdfast.domain.checkpoints import Checkpoint, NewCheckpoint
from holdfast.domain.component_states import contents_of, decode_manifest
from holdfast.domain.errors import NotFound
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.paths import from_text
from holdfast.domain.sessions import Round, Session
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.trees.tree import EMPTY_TREE, Tree, decode_tree
from holdfast.engine.sessions.approval import rounds_in
from holdfast.engine.sessions.current import current_session
from holdfast.engine.vault import Vault


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows in the order of creation; `latest` is the newest state of the work. `whole` sessions are
    exported with their conversation; single checkpoints only with their annotations."""

    sessions: tuple[Session, ...]
    checkpoints: tuple[NewCheckpoint, ...]
    latest: CheckpointId
    rounds: Mapping[SessionId, tuple[Round, ...]]
    whole: bool = False


def select_sessions(vault: Vault, sessions: Sequence[SessionId]) -> Selection:
    """Whole sessions with restore records; the last session defines `latest`."""
    chosen: list[Checkpoint] = []
    for session_id in sessions:
        chosen += vault.catalog.history(session_id, records=True)
    return replace(_selection(vault, chosen, sessions[-1] if sessions else None), whole=True)


def select_all(vault: Vault) -> Selection:
    current = current_session(vault)
    known = [session.id for session in vault.catalog.sessions()]
    return select_sessions(vault, sorted(known, key=lambda session_id: session_id == current))


def select_checkpoints(vault: Vault, chosen: Sequence[Checkpoint]) -> Selection:
    """Some checkpoints of one session."""
    once = {checkpoint.id: checkpoint for checkpoint in chosen}
    return _selection(vault, list(once.values()), chosen[0].session_id if chosen else None)


def _selection(vault: Vault, chosen: list[Checkpoint], main: SessionId | None) -> Selection:
    if not chosen:
        raise NotFound("no checkpoint to export", hint='to create one: holdfast checkpoint "why"')
    chosen.sort(key=lambda checkpoint: checkpoint.sequence)
    ids = {checkpoint.id: checkpoint for checkpoint in chosen}
    rows = tuple(_row(vault, checkpoint, ids) for checkpoint in chosen)
    wanted = {checkpoint.session_id for checkpoint in chosen}
    sessions = tuple(_session(vault, s, ids) for s in vault.catalog.sessions() if s.id in wanted)
    latest = next((s.head for s in sessions if s.id == main), None)
    rounds = {
        session.id: exportable_rounds(rounds_in(vault, session.id), ids) for session in sessions
    }
    return Selection(sessions, rows, latest or chosen[-1].id, rounds)


def _session(vault: Vault, session: Session, chosen: Mapping[CheckpointId, Checkpoint]) -> Session:
    newest = [c.id for c in chosen.values() if c.session_id == session.id][-1]
    head = _nearest(vault, session.id, session.head, chosen) or newest
    approved = session.approved if session.approved in chosen else None
    return replace(session, head=head, approved=approved)


def _row(
    vault: Vault, checkpoint: Checkpoint, chosen: Mapping[CheckpointId, Checkpoint]
) -> NewCheckpoint:
    fields = {name: getattr(checkpoint, name) for name in NewCheckpoint.__dataclass_fields__}
    fields["parent"] = _nearest(vault, checkpoint.session_id, checkpoint.parent, chosen)
    if checkpoint.restores_from not in chosen:
        fields["restores_from"] = None
    return NewCheckpoint(**fields)


def _nearest(
    vault: Vault,
    session_id: SessionId,
    start: CheckpointId | None,
    chosen: Mapping[CheckpointId, Checkpoint],
) -> CheckpointId | None:
    at = start
    while at is not None and at not in chosen:
        found = vault.catalog.checkpoint(session_id, at)
        at = found.parent if found is not None else None
    return at


@dataclass(slots=True)
class BundleObjects:
    """Every object in write order, each with an earlier one that it may resemble."""

    order: list[tuple[Role, Digest, Digest | None]] = field(default_factory=list)
    seen: set[tuple[Role, Digest]] = field(default_factory=set)
    content_bytes: int = 0

    def add(self, role: Role, digest: Digest, size: int, similar_to: Digest | None = None) -> None:
        if (role, digest) in self.seen:
            return
        known = similar_to is not None and (role, similar_to) in self.seen
        self.order.append((role, digest, similar_to if known else None))
        self.seen.add((role, digest))
        self.content_bytes += size


def objects_of(vault: Vault, selection: Selection) -> BundleObjects:
    objects = BundleObjects()
    trees = {row.id: row.tree for row in selection.checkpoints}
    report: Digest | None = None
    manifest: Digest | None = None
    before: Digest | None = None
    for row in selection.checkpoints:
        if row.report is not None:
            size = len(vault.objects.read(row.report))
            objects.add(Role.REPORT, row.report, size, report)
            report = row.report
        if row.components is not None:
            manifest = _add_components(vault, objects, row.components, manifest)
        parent = trees[row.parent] if row.parent is not None else before
        _add_tree(vault, objects, row.tree, parent)
        before = row.tree
    return objects


def _add_components(
    vault: Vault, objects: BundleObjects, manifest: Digest, before: Digest | None
) -> Digest:
    """Adds a checkpoint's component manifest, after the objects of its components."""
    encoded = vault.objects.read(manifest)
    for content in contents_of(decode_manifest(encoded)):
        name = from_text(content.name)
        entry = FileEntry(name, 0, content.size, 0, content.digest, chunks=content.chunks)
        _add_file(vault, objects, entry, EMPTY_TREE)
    objects.add(Role.COMPONENTS, manifest, len(encoded), before)
    return manifest


def _add_tree(vault: Vault, objects: BundleObjects, root: Digest, before: Digest | None) -> None:
    """Depth first, each directory after everything in it; known ones are not entered again."""
    pending: list[tuple[Digest, Digest | None, int | None]] = [(root, before, None)]
    while pending:
        digest, similar, size = pending.pop()
        if size is not None:
            objects.add(Role.TREE, digest, size, similar)
            continue
        if (Role.TREE, digest) in objects.seen:
            continue
        encoded = vault.objects.read(digest)
        tree = decode_tree(encoded)
        old = EMPTY_TREE if similar is None else vault.load_tree(similar)
        pending.append((digest, similar, len(encoded)))
        for entry in tree.files:
            _add_file(vault, objects, entry, old)
        for directory in tree.directories:
            was = old.by_name.get(directory.name)
            known = was.digest if isinstance(was, DirectoryEntry) else None
            pending.append((directory.digest, known, None))


def _add_file(vault: Vault, objects: BundleObjects, entry: FileEntry, old: Tree) -> None:
    was = old.by_name.get(entry.name)
    if entry.chunks is None:
        known = was.digest if isinstance(was, FileEntry) and was.chunks is None else None
        objects.add(Role.BLOB, entry.digest, entry.size, known)
        return
    if (Role.PIECES, entry.chunks) in objects.seen:
        return
    encoded = vault.objects.read(entry.chunks)
    for piece in decode_chunk_list(encoded):
        objects.add(Role.BLOB, piece.digest, piece.size)
    known = was.chunks if isinstance(was, FileEntry) else None
    objects.add(Role.PIECES, entry.chunks, len(encoded), known)
