"""Files that belong to a SQLite database: planning, verifying and replacing them.

The planner, the verifier and the executor know paths and entries. All special rules for a database
file, its log, journal and shared memory are here. A database is exchanged between two transactions:
otherwise, an old journal could be rolled back into the new database file. A possible database is
recognised by its size, which avoids opening every other file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from holdfast.domain.checkpoints import Checkpoint, SkipReason
from holdfast.domain.ids import Digest
from holdfast.domain.paths import basename, is_within, parent
from holdfast.domain.restore import database_steps
from holdfast.domain.restore.plan import UNDER_WAY, RestorePlan, Step, StepType
from holdfast.domain.sqlite_files import (
    COMPANIONS,
    HEADER,
    JOURNAL,
    SHARED_MEMORY,
    database_of,
    is_shared_memory,
)
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.stored_objects import entry_at, list_files, read_content
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import FILE_FLAGS, Filesystem
from holdfast.ports.live_database import LiveDatabases
from holdfast.values.classes import replace

_SMALLEST_PAGE_BYTES = 512


def transactions_under_way(scan: Scan) -> set[bytes]:
    """Databases that a scan found in the middle of a transaction."""
    return {
        skip.path.removesuffix(JOURNAL)
        for skip in scan.skipped
        if skip.reason is SkipReason.TRANSACTION
    }


def owner_of(load: TreeLoader, tree: Digest, path: bytes) -> bytes:
    """The path whose rules apply to this one, because rules cannot split a database."""
    base = database_of(path)
    is_part = base is not None and isinstance(entry_at(load, tree, base), FileEntry)
    return base if base is not None and is_part else path


def with_whole_databases(
    vault: Vault,
    plan: RestorePlan,
    scan: Scan,
    load: TreeLoader,
    target: Digest,
    paths: tuple[bytes, ...],
) -> RestorePlan:
    """The plan with each database as a unit, under all of its names."""
    plan = database_steps.with_whole_databases(
        plan,
        {skip.path for skip in scan.skipped if skip.reason is SkipReason.SHARED_MEMORY},
        lambda path: (entry_at(load, scan.tree, path), entry_at(load, target, path)),
        lambda entry: _is_database(vault, entry),
    )
    return _with_all_names(plan, load, scan.tree, target, paths)


def _with_all_names(
    plan: RestorePlan, load: TreeLoader, now: Digest, then: Digest, paths: tuple[bytes, ...]
) -> RestorePlan:
    """A database is replaced even if only its log differs. If its file has several names, all are
    replaced, so that they remain one file."""
    groups = {
        step.after.link
        for step in plan.steps
        if step.type is StepType.RESTORE
        and isinstance(step.after, FileEntry)
        and step.after.link is not None
        and step.after.same_state(step.before)
    }
    if not groups:
        return plan
    planned = {step.path for step in plan.steps}
    more = [
        Step(StepType.RELINK, path, entry_at(load, now, path), entry)
        for path, entry in list_files(load, then)
        if entry.link in groups
        and path not in planned
        and (not paths or any(is_within(path, chosen) for chosen in paths))
    ]
    return replace(plan, steps=(*plan.steps, *more))


def with_companions(
    vault: Vault, target: Checkpoint, paths: tuple[bytes, ...]
) -> tuple[bytes, ...]:
    """Adds the log of each selected database, or the removal of its current log."""
    added: list[bytes] = []
    for path in paths:
        entry = entry_at(vault.load_tree, target.tree, path)
        if not isinstance(entry, FileEntry):
            continue
        beside = [path + suffix for suffix in COMPANIONS if path + suffix not in paths]
        found = [p for p in beside if _is_known(vault, target, p)]
        if found and _is_database(vault, entry):
            added += found
    return (*paths, *added)


def _is_database(vault: Vault, entry: FileEntry) -> bool:
    """Decides by the first bytes, if the store has them: a preview stores nothing."""
    stored = vault.objects.contains(entry.chunks or entry.digest)
    if not stored or entry.size < len(HEADER):
        return False
    return next(read_content(vault.objects, entry)).startswith(HEADER)


def _is_known(vault: Vault, target: Checkpoint, path: bytes) -> bool:
    there = os.path.lexists(os.path.join(os.fsencode(vault.workspace), path))
    return there or entry_at(vault.load_tree, target.tree, path) is not None


def is_made_by_opening(fs: Filesystem, dir_fd: int, name: bytes, status: os.stat_result) -> bool:
    """Whether a file is the empty log or shared memory that a program creates when it opens the
    database beside it."""
    if database_of(name) is None or not stat.S_ISREG(status.st_mode):
        return False
    return status.st_size == 0 or _is_shared_memory(fs, dir_fd, name)


def _is_shared_memory(fs: Filesystem, dir_fd: int, name: bytes) -> bool:
    if not name.endswith(SHARED_MEMORY):
        return False
    fd = fs.open(name, FILE_FLAGS, dir_fd=dir_fd)
    try:
        beginning = fs.pread(fd, 4, 0)
        return not beginning.strip(b"\0") or is_shared_memory(name, beginning)  # new, or in use
    finally:
        fs.close(fd)


@contextmanager
def between_transactions(
    databases: LiveDatabases, step: Step, dir_fd: int, name: bytes
) -> Iterator[None]:
    """For the file that a step displaces; `OSError` if a transaction does not end."""
    size = step.before.size if isinstance(step.before, FileEntry) else 0
    if size == 0 or size % _SMALLEST_PAGE_BYTES:
        yield
        return
    with databases.pause_database(name, dir_fd=dir_fd) as paused:
        if not paused:
            raise OSError(errno.EBUSY, UNDER_WAY)
        yield


@contextmanager
def between_transactions_if_possible(
    databases: LiveDatabases, dir_fd: int, name: bytes
) -> Iterator[None]:
    """For rolling a restore back, which must continue in any case."""
    with databases.pause_database(name, dir_fd=dir_fd):
        yield


@contextmanager
def no_transaction(vault: Vault, paths: Sequence[bytes]) -> Iterator[bool]:
    """Whether none of these databases is in a transaction, or enters one, within the block. False
    if a transaction does not end for a while."""
    with (
        vault.open_root() as root_fd,
        DirectoryHandles(vault.fs, root_fd) as handles,
        ExitStack() as held,
    ):
        yield all(_is_paused(vault.databases, handles, held, path) for path in paths)


def _is_paused(
    databases: LiveDatabases, handles: DirectoryHandles, held: ExitStack, path: bytes
) -> bool:
    try:
        dir_fd = handles.open(parent(path))
    except OSError:
        return True  # gone meanwhile, which the next scan notices
    return held.enter_context(databases.pause_database(basename(path), dir_fd=dir_fd))
