"""Unsaved bytes that a restore moved out of the workspace (RB-6).

They are stored, and replace the older version in the safety checkpoint. So undo restores what was
really there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from holdfast.domain.ids import Digest
from holdfast.domain.paths import ancestors, basename, parent
from holdfast.domain.sqlite_files import JOURNAL, LOG, SHARED_MEMORY, is_shared_memory
from holdfast.domain.trees.changes import Replacement, TreeLoader, replace_entries
from holdfast.domain.trees.entries import MODE_MASK, FileEntry, SymlinkEntry, storable_ns
from holdfast.engine.restore.database_groups import ASIDE, BACK
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, OWNER_ALL, DirectoryHandles
from holdfast.engine.restore.journal import Journal
from holdfast.engine.restore.staged_moves import Displaced, return_others
from holdfast.engine.restore.verifier import digest_of_file
from holdfast.engine.scan.file_capture import FileCapture, is_sparse
from holdfast.engine.stored_objects import cached_loader, entry_at, object_batch
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import FILE_FLAGS, SET_ASIDE

Unsaved: TypeAlias = dict[bytes, FileEntry | SymlinkEntry | None]
"""By path; None for a log that the whole database beside it has absorbed."""


def find_unsaved(vault: Vault, displaced: Iterable[Displaced]) -> Unsaved:
    """Displaced entries that the plan did not expect, by path, with durable content."""

    def is_expected(item: Displaced, there: SymlinkEntry | bytes) -> bool:
        if isinstance(there, SymlinkEntry):
            return there.same_state(item.expected)
        return isinstance(item.expected, FileEntry) and there == item.expected.digest

    return _unsaved(vault, displaced, is_expected)


def find_unknown(vault: Vault, journal: Journal, known: tuple[Digest, ...]) -> Unsaved:
    """Files and links in a restore's staging slots that none of the `known` trees has at their
    path. A directory that the restore had no time to return is returned.

    Equal content elsewhere in the store is not enough: a collection may delete content that no
    checkpoint refers to.
    """
    load = cached_loader(vault.load_tree)

    def is_known(item: Displaced, there: SymlinkEntry | bytes) -> bool:
        return any(_has(load, tree, item, there) for tree in known)

    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        return _unsaved(vault, _occupied_slots(vault, handles, journal), is_known)


def _unsaved(
    vault: Vault,
    items: Iterable[Displaced],
    is_saved: Callable[[Displaced, SymlinkEntry | bytes], bool],
) -> Unsaved:
    """`is_saved` decides for each link, and for each content by its digest."""
    found: list[Displaced] = []
    links: list[tuple[bytes, SymlinkEntry]] = []
    for item in items:
        status = vault.fs.stat(item.slot, dir_fd=item.area, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target = vault.fs.readlink(item.slot, dir_fd=item.area)
            link = SymlinkEntry(item.slot, target, storable_ns(status.st_mtime_ns))
            if not is_saved(item, link):
                links.append((item.path, link))
        elif stat.S_ISREG(status.st_mode):
            with _readable(vault, item.area, item.slot, status):
                if _is_live_shared_memory(vault, item):
                    continue
                digest = digest_of_file(vault.fs, item.area, item.slot)
            if not is_saved(item, digest):
                found.append(item)
    return _at_distinct_paths((*links, *_capture(vault, found)))


def open_staging(vault: Vault, handles: DirectoryHandles, directory: bytes) -> int:
    """Staging belongs to Holdfast, so a mode that prevents access is changed."""
    try:
        return handles.open(directory)
    except PermissionError:
        above = handles.open(parent(directory))
        vault.fs.set_mode(basename(directory), OWNER_ALL, dir_fd=above)
        return handles.open(directory)


def _occupied_slots(
    vault: Vault, handles: DirectoryHandles, journal: Journal
) -> Iterator[Displaced]:
    for directory in journal.staging:
        try:
            area = open_staging(vault, handles, directory)
        except OSError as error:
            if error.errno not in NO_DIRECTORY:
                raise
            continue
        # In the order of the steps, because neighbours are in the same directory.
        for slot in sorted(vault.fs.list_names(area), key=lambda one: (len(one), one)):
            number, whole = _slot_number(slot)
            path = None if number is None else journal.slots.get(number)
            if path is None:
                continue
            returned = return_others(vault.fs, handles, path, slot, area)
            if not returned or slot in vault.fs.list_names(area):
                yield Displaced(path, area, slot, None, whole)


@contextmanager
def _readable(vault: Vault, area: int, slot: bytes, status: os.stat_result) -> Iterator[None]:
    """Makes a staged file readable within the block, if its mode prevents that."""
    mode = status.st_mode & MODE_MASK
    if mode & stat.S_IRUSR:
        yield
        return
    vault.fs.set_mode(slot, mode | stat.S_IRUSR, dir_fd=area)
    try:
        yield
    finally:
        vault.fs.set_mode(slot, mode, dir_fd=area)


def _has(load: TreeLoader, tree: Digest, item: Displaced, there: SymlinkEntry | bytes) -> bool:
    if item.whole and entry_at(load, tree, item.path + LOG) is not None:
        return False  # with its log, the database there is in another state
    entry = entry_at(load, tree, item.path)
    if isinstance(there, SymlinkEntry):
        return there.same_state(entry)
    return isinstance(entry, FileEntry) and entry.digest == there


def _slot_number(slot: bytes) -> tuple[int | None, bool]:
    """The number of the slot's step, and whether it holds a whole database."""
    if slot.removesuffix(SET_ASIDE).isdigit():
        return int(slot.removesuffix(SET_ASIDE)), False
    number = slot.removeprefix(ASIDE).removeprefix(BACK)
    return (int(number), True) if slot.startswith(ASIDE) and number.isdigit() else (None, False)


def _is_live_shared_memory(vault: Vault, item: Displaced) -> bool:
    """The shared memory of programs that have a database open changes all the time, so losing it
    does no harm."""
    if not item.path.endswith(SHARED_MEMORY):
        return False
    fd = vault.fs.open(item.slot, FILE_FLAGS, dir_fd=item.area)
    try:
        return is_shared_memory(item.path, vault.fs.pread(fd, 4, 0))
    finally:
        vault.fs.close(fd)


def _at_distinct_paths(
    found: Iterable[tuple[bytes, FileEntry | SymlinkEntry | None]],
) -> Unsaved:
    """One path may have been several things in turn, even a directory. A tree holds only one of
    them there; the others are placed beside it."""
    placed: Unsaved = {}
    directories: set[bytes] = set()
    for path, entry in found:
        free = path if entry is None else _free_path(path, placed, directories)
        placed[free] = entry
        directories.update(ancestors(free))
    return placed


def _free_path(path: bytes, placed: Unsaved, directories: set[bytes]) -> bytes:
    taken = next((above for above in (path, *ancestors(path)) if above in placed), None)
    if taken is None and path not in directories:
        return path
    length = len(path if taken is None else taken)
    number, beside = 0, path[:length]
    while beside in placed or beside in directories:
        number += 1
        beside = b"%s.meanwhile-%d" % (path[:length], number)
    return beside + path[length:]


def _capture(vault: Vault, items: list[Displaced]) -> list[tuple[bytes, FileEntry | None]]:
    if not items:
        return []
    captured: list[tuple[bytes, FileEntry | None]] = []
    with object_batch(vault.objects) as writer:
        capture = FileCapture(vault.fs, writer, vault.clock.now_ns())
        for item in items:
            status = vault.fs.stat(item.slot, dir_fd=item.area, follow_symlinks=False)
            with _readable(vault, item.area, item.slot, status):
                read = capture.capture(item.area, item.slot, status.st_size, None)
            entry = FileEntry(
                item.slot,
                status.st_mode & MODE_MASK,
                read.content.size,
                storable_ns(status.st_mtime_ns),
                read.content.digest,
                read.content.chunks,
                is_sparse(read.status),
            )
            captured.append((item.path, entry))
            if item.whole:
                captured += [(item.path + LOG, None), (item.path + JOURNAL, None)]
    return captured


def amended_tree(vault: Vault, safety_tree: Digest, changes: Mapping[bytes, Replacement]) -> Digest:
    """The safety tree with these entries, durable."""
    digest, encoded = replace_entries(vault.load_tree, safety_tree, changes)
    with object_batch(vault.objects) as writer:
        for tree_digest, data in encoded.items():
            writer.add(tree_digest, data)
    return digest
