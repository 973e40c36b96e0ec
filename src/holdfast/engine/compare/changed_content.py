"""The two contents of a changed path, read from the store or from the current workspace.

Guarantee: a workspace path is opened through directory handles without following links (I6). A
link's content is its target.
Not guaranteed: that a workspace file is still as scanned, because it is read on demand.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.errors import ContentChanged, ObjectDamaged, ObjectMissing
from holdfast.domain.paths import basename, parent, to_text
from holdfast.domain.trees.changes import Change
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.engine.compare.content_diff import BytesContent, Content, ContentDiff, compare_content
from holdfast.engine.compare.tree_diff import IgnoredContent
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import FILE_FLAGS
from holdfast.ports.objects import ObjectReader
from holdfast.values.classes import dataclass

_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class StoredContent:
    """A file of a checkpoint, and the path to report if it is damaged."""

    objects: ObjectReader
    entry: FileEntry
    path: bytes

    @property
    def size_bytes(self) -> int:
        return self.entry.size

    def chunks(self) -> Iterator[bytes]:
        try:
            yield from read_content(self.objects, self.entry)
        except (ObjectDamaged, ObjectMissing) as error:
            raise type(error)(
                f"cannot read {to_text(self.path)}: {error.message}", hint=error.hint
            ) from error


@dataclass(frozen=True, slots=True)
class WorkspaceContent:
    """A file of the workspace."""

    vault: Vault
    path: bytes
    size_bytes: int

    def chunks(self) -> Iterator[bytes]:
        fs = self.vault.fs
        try:
            with self.vault.open_root() as root_fd, DirectoryHandles(fs, root_fd) as handles:
                above = handles.open(parent(self.path))
                fd = fs.open(basename(self.path), FILE_FLAGS, dir_fd=above)
        except OSError as error:
            raise ContentChanged(
                f"cannot read {self.path.decode('utf-8', 'backslashreplace')}: {error.strerror}",
                hint="it changed during the comparison; try again",
            ) from None
        try:
            while piece := fs.read(fd, _PIECE_BYTES):
                yield piece
        finally:
            fs.close(fd)


def compare_change(
    vault: Vault,
    change: Change,
    ignored: IgnoredContent,
    *,
    new_in_workspace: bool,
    context: int = 3,
) -> ContentDiff | None:
    """How the content of a path changed; None if neither side has any (directories). Ignored
    content is withheld: only its sizes are given."""
    old, new = contents_of(vault, change, new_in_workspace=new_in_workspace)
    if old is None and new is None:
        return None
    if ignored.is_withheld(change):
        old_size = None if old is None else old.size_bytes
        return ContentDiff("withheld", old_size, None if new is None else new.size_bytes)
    return compare_content(change.path, old, new, context=context)


def contents_of(
    vault: Vault, change: Change, *, new_in_workspace: bool
) -> tuple[Content | None, Content | None]:
    """The old and new content of a path; None for a side without content."""
    new = _in_workspace(vault, change) if new_in_workspace else _stored(vault, change, change.new)
    return _stored(vault, change, change.old), new


def _stored(vault: Vault, change: Change, entry: Entry | None) -> Content | None:
    if isinstance(entry, FileEntry):
        return StoredContent(vault.objects, entry, change.path)
    return BytesContent(entry.target) if isinstance(entry, SymlinkEntry) else None


def _in_workspace(vault: Vault, change: Change) -> Content | None:
    if isinstance(change.new, SymlinkEntry):
        return BytesContent(change.new.target)
    if change.new is None or isinstance(change.new, DirectoryEntry):
        return None
    return WorkspaceContent(vault, change.path, change.new.size)
