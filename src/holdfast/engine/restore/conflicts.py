"""Bytes that came out of the workspace during a restore and that nobody had saved (RB-6).

They are taken into the store and put into the safety checkpoint in place of the older version,
so that undo brings back what was really there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping

from holdfast.domain.entries import MODE_MASK, FileEntry, SymlinkEntry, storable_ns
from holdfast.domain.ids import Digest
from holdfast.domain.sqlite_files import SHARED_MEMORY, is_shared_memory
from holdfast.domain.tree_edits import Replacement, replace_entries
from holdfast.engine.listing import entry_at
from holdfast.engine.restore.executor import Displaced
from holdfast.engine.restore.handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.restore.journal import Journal
from holdfast.engine.restore.verifier import digest_of_file
from holdfast.engine.scan.file_capture import FileCapture, is_sparse
from holdfast.engine.vault import Vault

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def find_unsaved(
    vault: Vault, displaced: Iterable[Displaced]
) -> dict[bytes, FileEntry | SymlinkEntry]:
    """Displaced things that are not what the plan expected, by path, with content made durable."""
    found: list[Displaced] = []
    links: dict[bytes, FileEntry | SymlinkEntry] = {}
    for item in displaced:
        status = vault.fs.stat(item.slot, dir_fd=item.area, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target = vault.fs.readlink(item.slot, dir_fd=item.area)
            link = SymlinkEntry(item.slot, target, storable_ns(status.st_mtime_ns))
            if not link.same_state(item.expected):
                links[item.path] = link
        elif stat.S_ISREG(status.st_mode):
            if _is_no_content(vault, item.path, item.area, item.slot):
                continue
            digest = digest_of_file(vault.fs, item.area, item.slot)
            if not isinstance(item.expected, FileEntry) or digest != item.expected.digest:
                found.append(item)
    return links | _capture(vault, found)


def find_unknown(
    vault: Vault, journal: Journal, known: tuple[Digest, ...]
) -> dict[bytes, FileEntry | SymlinkEntry]:
    """Files in the staging slots of a restore that none of the `known` trees has at their path.

    That the store holds the same content somewhere is not enough: what no checkpoint names goes
    with the next collection.
    """
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        found: list[Displaced] = []
        for directory in journal.staging:
            try:
                area = handles.open(directory)
            except OSError as error:
                if error.errno not in NO_DIRECTORY:
                    raise
                continue
            for slot in vault.fs.list_names(area):
                path = journal.slots.get(int(slot)) if slot.isdigit() else None
                status = vault.fs.stat(slot, dir_fd=area, follow_symlinks=False)
                if path is None or not stat.S_ISREG(status.st_mode):
                    continue
                if _is_no_content(vault, path, area, slot):
                    continue
                digest = digest_of_file(vault.fs, area, slot)
                entries = [entry_at(vault.load_tree, tree, path) for tree in known]
                if not any(isinstance(e, FileEntry) and e.digest == digest for e in entries):
                    found.append(Displaced(path, area, slot, None))
        return _capture(vault, found)


def _is_no_content(vault: Vault, path: bytes, area: int, slot: bytes) -> bool:
    """What processes share that have a database open changes all the time, and is no loss."""
    if not path.endswith(SHARED_MEMORY):
        return False
    fd = vault.fs.open(slot, _FLAGS, dir_fd=area)
    try:
        return is_shared_memory(path, vault.fs.pread(fd, 4, 0))
    finally:
        vault.fs.close(fd)


def _capture(vault: Vault, items: list[Displaced]) -> dict[bytes, FileEntry | SymlinkEntry]:
    if not items:
        return {}
    writer = vault.objects.writer()
    capture = FileCapture(vault.fs, writer, vault.clock.now_ns())
    captured: dict[bytes, FileEntry | SymlinkEntry] = {}
    try:
        for item in items:
            status = vault.fs.stat(item.slot, dir_fd=item.area, follow_symlinks=False)
            read = capture.capture(item.area, item.slot, status.st_size, None)
            captured[item.path] = FileEntry(
                item.slot,
                status.st_mode & MODE_MASK,
                read.content.size,
                storable_ns(status.st_mtime_ns),
                read.content.digest,
                read.content.chunks,
                is_sparse(read.status),
            )
        writer.commit()
    except BaseException:
        writer.abandon()
        raise
    return captured


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
