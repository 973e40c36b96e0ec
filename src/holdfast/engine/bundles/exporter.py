"""Writing a bundle.

    write front to back, each object once and after the objects it names → digest
    → .NAME.part beside the file → fsync → rename → sync the directory
    → if anything fails: the former file, if there was one, gets its name back

Guarantees: the bundle holds everything that its checkpoints need and nothing else, verified by the
same inventory that an import uses. The file is complete, durable and private, or does not exist.
Content is read and written one object at a time. A killed writer leaves `.NAME.part` or
`.NAME.former`, which the next export to that name removes. Not guaranteed: secrecy. Anyone who has
the file can read its content. A file system without hard links cannot give back a former file.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.domain.bundles.inventory import Inventory
from holdfast.domain.bundles.rows import Origin, encode_checkpoint, encode_origin, encode_session
from holdfast.domain.bundles.story import encode_rounds, encode_story
from holdfast.domain.errors import HoldfastError, NoSpace, Refused, StoreDamaged, UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.story import Message
from holdfast.engine.bundles.frames import (
    CHECKPOINT,
    LARGEST_MANIFEST_BYTES,
    LARGEST_OBJECT_BYTES,
    LARGEST_ROW_BYTES,
    OBJECT,
    ORIGIN,
    SESSION,
    STORY,
    FrameWriter,
)
from holdfast.engine.bundles.objects import ObjectEncoder
from holdfast.engine.bundles.selection import BundleObjects, Selection, objects_of
from holdfast.engine.stored_objects import explain_deletion
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import FILE_MODE, FULL_ERRORS, Filesystem
from holdfast.ports.progress import NoProgress, Progress

_SOME_MESSAGES = 1000
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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


def export_to_file(
    vault: Vault,
    selection: Selection,
    path: Path,
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> ExportOutcome:
    """Write a bundle to a file, completely or not at all."""
    with new_file(vault.fs, path, replace=replace) as fd:
        return export_to(vault, selection, fd, progress=progress)


def export_to(
    vault: Vault, selection: Selection, fd: int, *, progress: Progress | None = None
) -> ExportOutcome:
    """Write to a descriptor, which need not be a file."""
    progress = progress or NoProgress()
    with explain_deletion(vault, selection.checkpoints, "exported", "export again"):
        objects = objects_of(vault, selection)
        return _write(vault, selection, objects, FrameWriter(vault.fs, fd), progress)


def _write(
    vault: Vault,
    selection: Selection,
    objects: BundleObjects,
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
        raise StoreDamaged(f"cannot export a checkpoint: {error}") from None
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
    """Returns the numbers of messages and annotations."""
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
            writer.frame(STORY, part)
        counted[0] += vault.story.message_count(session.id) if selection.whole else 0
        counted[1] += len(annotations)
    return counted[0], counted[1]


def _all_messages(vault: Vault, session_id: SessionId) -> Iterator[Message]:
    """Read in parts, because a conversation can be larger than memory."""
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
                f"checkpoint {row.id}: its reasons and tool calls are too large for one file",
                hint="export fewer checkpoints at a time",
            )
        yield encoded


def _write_objects(
    vault: Vault, objects: BundleObjects, writer: FrameWriter, progress: Progress
) -> Inventory:
    """The store verifies each object as it is read; the inventory verifies that they fit."""
    inventory = Inventory()
    encoder = ObjectEncoder(vault.objects.read)
    total = len(objects.order)
    for number, (role, digest, similar_to) in enumerate(objects.order):
        progress.advance("exporting", number, total)
        data = vault.objects.read(digest)
        if len(data) > LARGEST_OBJECT_BYTES:
            raise Refused(
                f"object {digest.hex()[:16]} has {len(data)} bytes, too large to export",
                hint="directories with this many names, and files this large, cannot be exported",
            )
        try:
            inventory.add(role, digest, data, place=writer.written_bytes)
        except ValueError as error:
            raise StoreDamaged(
                f"cannot export a checkpoint: {error}", hint="run: holdfast check --data"
            ) from None
        writer.frame(OBJECT, encoder.encode(role, digest, data, similar_to))
    return inventory


@contextmanager
def new_file(fs: Filesystem, path: Path, *, replace: bool) -> Iterator[int]:
    """A descriptor to write to. The file appears when the block ends without an error."""
    name = os.fsencode(path.name)
    if not name or name == b".." or path.is_dir():
        raise UsageError(f"{path} is a directory", hint="use a file name")
    if not replace and os.path.lexists(path):
        raise already_there(path)
    try:
        directory = fs.open(os.fsencode(path.parent), _DIRECTORY_FLAGS)
    except OSError as error:
        raise _trouble(path, error) from None
    try:
        yield from _written(fs, directory, name, path, replace=replace)
    finally:
        with contextlib.suppress(OSError):  # the directory was only synced
            fs.close(directory)


def _written(
    fs: Filesystem, directory: int, name: bytes, path: Path, *, replace: bool
) -> Iterator[int]:
    part = b"." + name + b".part"
    try:
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(part, dir_fd=directory)
        fd = fs.open(part, _NEW_FLAGS, FILE_MODE, dir_fd=directory)
    except OSError as error:
        raise _trouble(path, error) from None
    try:
        try:
            yield fd
            fs.fsync(fd)
        finally:
            fs.close(fd)
        _place(fs, directory, part, name, replace=replace)
    except BaseException as error:
        with contextlib.suppress(OSError):
            fs.unlink(part, dir_fd=directory)
        if isinstance(error, FileExistsError):
            raise already_there(path) from None
        if isinstance(error, OSError):
            raise _trouble(path, error) from error
        raise


def _place(fs: Filesystem, directory: int, part: bytes, name: bytes, *, replace: bool) -> None:
    """Give the file its name, durably. If that fails, the name has what it had before."""
    former = b"." + name + b".former"
    with contextlib.suppress(FileNotFoundError):
        fs.unlink(former, dir_fd=directory)  # left by a killed writer
    was_there = _exists(fs, name, directory)
    kept = False
    if replace and was_there:
        with contextlib.suppress(OSError):  # some file systems have no links
            fs.link(name, former, src_dir_fd=directory, dst_dir_fd=directory)
            kept = True
    try:
        placed = fs.rename if replace else fs.rename_new
        placed(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        try:
            fs.fsync(directory)
        except BaseException:
            with contextlib.suppress(OSError):
                if kept:
                    fs.rename(former, name, src_dir_fd=directory, dst_dir_fd=directory)
                elif not was_there:
                    fs.unlink(name, dir_fd=directory)
            raise
    finally:
        if kept:
            with contextlib.suppress(OSError):
                fs.unlink(former, dir_fd=directory)


def _exists(fs: Filesystem, name: bytes, directory: int) -> bool:
    try:
        fs.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def already_there(path: Path) -> Refused:
    return Refused(f"{path} already exists", hint="use another name, or replace it with --force")


def _trouble(path: Path, error: OSError) -> HoldfastError:
    if error.errno in FULL_ERRORS:
        return NoSpace(
            f"no space left for {path}", hint="free some disk space, or write it elsewhere"
        )
    hint = "check the permissions of its directory"
    if error.errno == errno.EIO:
        hint = "check the disk, or write it elsewhere"
    return Refused(f"cannot write {path}: {error.strerror}", hint=hint)
