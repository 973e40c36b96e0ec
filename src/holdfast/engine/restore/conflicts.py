"""Bytes that came out of the workspace during a restore and that nobody had saved (RB-6).

They are taken into the store and put into the safety checkpoint in place of the older version,
so that undo brings back what was really there.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping

from holdfast.domain.entries import MODE_MASK, FileEntry, SymlinkEntry
from holdfast.domain.ids import Digest
from holdfast.domain.tree_edits import Replacement, replace_entries
from holdfast.engine.restore.executor import Displaced
from holdfast.engine.restore.verifier import digest_of_file
from holdfast.engine.scan.file_capture import FileCapture, is_sparse
from holdfast.engine.vault import Vault


def find_unsaved(
    vault: Vault, displaced: Iterable[Displaced], *, only_unknown: bool = False
) -> dict[bytes, FileEntry | SymlinkEntry]:
    """Displaced things that are not what the plan expected, by path, with content made durable.

    With `only_unknown`, where it is not known what was expected: those whose content the store
    does not have at all.
    """
    writer = vault.objects.writer()
    capture = FileCapture(vault.fs, writer)
    unsaved: dict[bytes, FileEntry | SymlinkEntry] = {}
    try:
        for item in displaced:
            status = vault.fs.stat(item.slot, dir_fd=item.area, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                target = vault.fs.readlink(item.slot, dir_fd=item.area)
                found = SymlinkEntry(item.slot, target, status.st_mtime_ns)
                if not found.same_state(item.expected):
                    unsaved[item.path] = found
            elif stat.S_ISREG(status.st_mode) and not _is_saved(vault, item, only_unknown):
                read = capture.capture(item.area, item.slot, status.st_size, None)
                unsaved[item.path] = FileEntry(
                    item.slot,
                    status.st_mode & MODE_MASK,
                    read.content.size,
                    status.st_mtime_ns,
                    read.content.digest,
                    read.content.chunks,
                    is_sparse(read.status),
                )
        writer.commit()
    except BaseException:
        writer.abandon()
        raise
    return unsaved


def _is_saved(vault: Vault, item: Displaced, only_unknown: bool) -> bool:
    digest = Digest(digest_of_file(vault.fs, item.area, item.slot))
    if only_unknown:
        return vault.objects.contains(digest)
    return isinstance(item.expected, FileEntry) and digest == item.expected.digest


def amended_tree(vault: Vault, safety_tree: Digest, changes: Mapping[bytes, Replacement]) -> Digest:
    """The safety tree with these entries in it, durable."""
    digest, encoded = replace_entries(vault.load_tree, safety_tree, changes)
    writer = vault.objects.writer()
    try:
        for tree_digest, data in encoded.items():
            writer.add(tree_digest, data)
        writer.commit()
    except BaseException:
        writer.abandon()
        raise
    return digest
