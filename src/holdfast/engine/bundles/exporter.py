"""Writing a bundle.

    choose → walk the trees: every object once, after all it names → write front to back
    → digest → synced → renamed into place

Guarantees: the file holds everything that its checkpoints need and nothing else, proven on the way
out by the same inventory that an import uses; under its name it is whole or not there. Content is
read and written one object at a time. Not guaranteed: secrecy. A bundle holds what the workspace
held, readable by whoever has the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.domain.bundles.inventory import Inventory, Role
from holdfast.domain.bundles.rows import (
    Origin,
    encode_checkpoint,
    encode_origin,
    encode_session,
)
from holdfast.domain.bundles.story import encode_rounds, encode_story
from holdfast.domain.component_states import contents_of, decode_manifest
from holdfast.domain.errors import Refused, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.paths import from_text
from holdfast.domain.story import Message
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.trees.tree import EMPTY_TREE, Tree
from holdfast.engine.bundles.frames import (
    CHECKPOINT,
    LARGEST_MANIFEST_BYTES,
    LARGEST_OBJECT_BYTES,
    LARGEST_ROW_BYTES,
    OBJECT,
    ORIGIN,
    SESSION,
    TOLD,
    FrameWriter,
)
from holdfast.engine.bundles.new_file import new_file
from holdfast.engine.bundles.objects import ObjectEncoder
from holdfast.engine.bundles.selection import Selection
from holdfast.engine.stored_objects import explain_deletion
from holdfast.engine.vault import Vault
from holdfast.ports.progress import NoProgress, Progress

_SOME_MESSAGES = 1000


@dataclass(frozen=True, slots=True)
class ExportOutcome:
    """A finished bundle."""

    sessions: tuple[str, ...]
    checkpoints: int
    objects: int
    content_bytes: int
    file_bytes: int
    latest: CheckpointId
    messages: int = 0
    annotations: int = 0


@dataclass(slots=True)
class _Objects:
    """Every object in the order of writing, each with an earlier one that it may resemble."""

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


def export_to_file(
    vault: Vault,
    selection: Selection,
    path: Path,
    *,
    replace: bool,
    progress: Progress | None = None,
) -> ExportOutcome:
    with new_file(vault.fs, path, replace=replace) as fd:
        return export_to(vault, selection, fd, progress=progress)


def export_to(
    vault: Vault, selection: Selection, fd: int, *, progress: Progress | None = None
) -> ExportOutcome:
    """Write to a descriptor that need not be a file."""
    progress = progress or NoProgress()
    with explain_deletion(vault, selection.checkpoints, "exported", "export again"):
        objects = _plan(vault, selection)
        return _write(vault, selection, objects, FrameWriter(vault.fs, fd), progress)


def _plan(vault: Vault, selection: Selection) -> _Objects:
    objects = _Objects()
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
    vault: Vault, objects: _Objects, manifest: Digest, before: Digest | None
) -> Digest:
    """The list of a checkpoint's components, after all that they gave."""
    encoded = vault.objects.read(manifest)
    for content in contents_of(decode_manifest(encoded)):
        name = from_text(content.name)
        entry = FileEntry(name, 0, content.size, 0, content.digest, chunks=content.chunks)
        _add_file(vault, objects, entry, EMPTY_TREE)
    objects.add(Role.COMPONENTS, manifest, len(encoded), before)
    return manifest


def _add_tree(vault: Vault, objects: _Objects, root: Digest, before: Digest | None) -> None:
    """Depth first, each directory after everything in it; what is known is not entered again."""
    pending: list[tuple[Digest, Digest | None, int | None]] = [(root, before, None)]
    while pending:
        digest, similar, size = pending.pop()
        if size is not None:
            objects.add(Role.TREE, digest, size, similar)
            continue
        if (Role.TREE, digest) in objects.seen:
            continue
        encoded_size, tree = _load(vault, digest)
        old = EMPTY_TREE if similar is None else vault.load_tree(similar)
        pending.append((digest, similar, encoded_size))
        for entry in tree.files:
            _add_file(vault, objects, entry, old)
        for directory in tree.directories:
            was = old.by_name.get(directory.name)
            known = was.digest if isinstance(was, DirectoryEntry) else None
            pending.append((directory.digest, known, None))


def _load(vault: Vault, digest: Digest) -> tuple[int, Tree]:
    return len(vault.objects.read(digest)), vault.load_tree(digest)


def _add_file(vault: Vault, objects: _Objects, entry: FileEntry, old: Tree) -> None:
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


def _write(
    vault: Vault,
    selection: Selection,
    objects: _Objects,
    writer: FrameWriter,
    progress: Progress,
) -> ExportOutcome:
    origin = Origin(
        workspace_id=vault.workspace_id,
        workspace=str(vault.workspace),
        made_at_ns=vault.clock.now_ns(),
        latest=selection.latest,
        sessions=len(selection.sessions),
        checkpoints=len(selection.checkpoints),
        objects=len(objects.order),
        content_bytes=objects.content_bytes,
    )
    writer.frame(ORIGIN, encode_origin(origin))
    for session in selection.sessions:
        writer.frame(SESSION, encode_session(session, encode_rounds(selection.rounds[session.id])))
    for encoded in _rows(selection):
        writer.frame(CHECKPOINT, encoded)
    inventory = _write_objects(vault, objects, writer, progress)
    try:
        for row in selection.checkpoints:
            inventory.require_checkpoint(row.tree, row.report, row.components)
        inventory.require_all_used()
    except ValueError as error:
        raise StoreDamaged(f"a checkpoint cannot be exported: {error}") from None
    said = _write_story(vault, selection, writer)
    writer.finish()
    return ExportOutcome(
        tuple(session.id for session in selection.sessions),
        origin.checkpoints,
        origin.objects,
        origin.content_bytes,
        writer.written_bytes,
        origin.latest,
        *said,
    )


def _write_story(vault: Vault, selection: Selection, writer: FrameWriter) -> tuple[int, int]:
    """How many messages and annotations that were."""
    if not vault.has_story():
        return 0, 0
    chosen = {row.id for row in selection.checkpoints}
    counted = [0, 0]
    for session in selection.sessions:
        messages = _all_messages(vault, session.id) if selection.whole else ()
        annotations = [
            annotation
            for annotation in vault.story.annotations(session.id, revisions=True)
            if annotation.checkpoint_id in chosen
        ]
        for part in encode_story(messages, annotations):
            writer.frame(TOLD, part)
        counted[0] += vault.story.message_count(session.id) if selection.whole else 0
        counted[1] += len(annotations)
    return counted[0], counted[1]


def _all_messages(vault: Vault, session_id: SessionId) -> Iterator[Message]:
    """Some at a time: a conversation can be larger than memory."""
    first = 0
    while some := vault.story.messages(session_id, first=first, limit=_SOME_MESSAGES):
        yield from some
        first = some[-1].index + 1


def _rows(selection: Selection) -> Iterator[bytes]:
    total = 0
    for row in selection.checkpoints:
        encoded = encode_checkpoint(row)
        total += len(encoded)
        if len(encoded) > LARGEST_ROW_BYTES or total > LARGEST_MANIFEST_BYTES // 2:
            raise Refused(
                f"checkpoint {row.id}: reasons and tool calls take more than fits into one bundle",
                hint="export fewer checkpoints at a time",
            )
        yield encoded


def _write_objects(
    vault: Vault, objects: _Objects, writer: FrameWriter, progress: Progress
) -> Inventory:
    """Content is proven by the store as it is read, and by the inventory to fit together."""
    inventory = Inventory()
    encoder = ObjectEncoder(vault.objects.read)
    total = len(objects.order)
    for number, (role, digest, similar_to) in enumerate(objects.order):
        progress.advance("exporting", number, total)
        data = vault.objects.read(digest)
        if len(data) > LARGEST_OBJECT_BYTES:
            raise Refused(
                f"object {digest.hex()[:16]} has {len(data)} bytes, more than a bundle takes",
                hint="a directory with so many names, or so large a file, cannot be exported",
            )
        try:
            inventory.add(role, digest, data, place=writer.written_bytes)
        except ValueError as error:
            raise StoreDamaged(
                f"a checkpoint cannot be exported: {error}", hint="run: holdfast check --data"
            ) from None
        writer.frame(OBJECT, encoder.encode(role, digest, data, similar_to))
    return inventory
