"""Databases in a scan: which files belong to one, and capturing it as one state.

A SQLite database is captured with its log while others write to it:

    the log's header → the database → the log → the log's header again
    same header: everything checkpointed into the database meanwhile is still in the log, too
    otherwise: once more, while a read transaction holds the database

Guarantee: a database reported as whole is in a state that it had. If no log is in use, that is the
database file alone, unchanged while it was read.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.paths import join
from holdfast.domain.sqlite_files import (
    COMPANIONS,
    HEADER,
    JOURNAL,
    LOG,
    LOG_HEADER_BYTES,
    SHARED_MEMORY,
    database_of,
    has_size_of_shared_memory,
    may_name_databases,
)
from holdfast.engine.scan.directory_state import DirectoryState, KnownChild, numbers_of
from holdfast.ports.filesystem import FILE_FLAGS, Filesystem
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.engine.scan.survey import Survey
    from holdfast.ports.live_database import LiveDatabases

_ATTEMPTS = 4

SUMMARY_DIRECTORIES = 100
"""How many directories are searched for the databases in a checkpoint's summary."""


class TypeChanged(Exception):
    """A name changed its type between two looks; the directory is surveyed again."""


class PartRead(NamedTuple):
    """The result of reading one file. `state` are its numbers after the read, None if it is gone.
    They are taken then because closing the handle releases the database."""

    stable: bool
    state: tuple[int, ...] | None


def may_have_databases(root: DirectoryState) -> bool:
    """Whether files near the top of the workspace are named like databases. Goes through the
    directories in the order in which a checkpoint's summary does."""
    waiting = deque([root])
    directories = 0
    while waiting and directories < SUMMARY_DIRECTORIES:
        directories += 1
        state = waiting.popleft()
        if may_name_databases(state.names):
            return True
        for name in sorted(state.children)[: SUMMARY_DIRECTORIES - directories - len(waiting)]:
            child = state.children[name]
            if isinstance(child, KnownChild):
                return True  # the scan did not visit it
            waiting.append(child)
    return False


def has_parts(name: bytes, present: Collection[bytes]) -> bool:
    """Whether the file and a file beside it may belong to one database."""
    return database_of(name) in present or any(name + each in present for each in COMPANIONS)


def independent_files(names: Collection[bytes]) -> set[bytes]:
    """Names of files that are not part of a database. Databases with a log are not independent
    either, because the log is read together with its database."""
    with_log = {name.removesuffix(LOG) for name in names if name.endswith(LOG)}
    return {name for name in names if not name.endswith(COMPANIONS)} - with_log


def is_part(survey: Survey, name: bytes) -> bool:
    """Whether a file's name makes it look like part of a database; its header decides."""
    return database_of(name) in survey.names or name + LOG in survey.names


def has_base_name(survey: Survey, name: bytes) -> bool:
    """Whether there is a file with the database's name."""
    return database_of(name) in survey.names


def depends(survey: Survey, name: bytes) -> bool:
    """Whether another file decides what this one is. A log is captured with its database, even
    if rules would leave the database out."""
    base, memory = database_of(name), name.endswith(SHARED_MEMORY)
    return base in survey.names and (memory or base not in survey.files)


def has_owner(survey: Survey, name: bytes) -> bool:
    """Whether its database is captured."""
    return database_of(name) in survey.files


def group(survey: Survey, name: bytes) -> list[bytes]:
    """A database and its log, because one without the other is a different state."""
    base = database_of(name)
    base = base if base in survey.read_together else name
    parts = {base, base + LOG} if base in survey.read_together else {name}
    return sorted(parts & set(survey.names))


def is_companion(survey: Survey, name: bytes, status: os.stat_result) -> bool:
    """Whether a file is part of a captured database."""
    base = database_of(name)
    if base not in survey.files or not stat.S_ISREG(status.st_mode):
        return False
    own = name != base + SHARED_MEMORY or has_size_of_shared_memory(status.st_size)
    return own and is_database(survey.fs, survey.fd, base)


def read_part(survey: Survey, name: bytes, status: os.stat_result) -> None:
    """Read a file that looks like part of a database. If it is one, read all of the database's
    files."""
    base = database_of(name)
    if base is None or base not in survey.names:
        base = name
    memory = name == base + SHARED_MEMORY
    own = not memory or has_size_of_shared_memory(status.st_size)
    if not own or not is_database(survey.fs, survey.fd, base):
        return survey.read(name, status)
    if memory:
        return survey.skip(name, SkipReason.SHARED_MEMORY)
    if name == base + JOURNAL:
        return _read_journal(survey, name, base, status)
    survey.read_together |= {base, base + LOG}
    return _read_database(survey, base)


def read_unstable(survey: Survey, name: bytes) -> bool:
    """Read a file that changed during its read as a database; False if it is none."""
    if not is_database(survey.fs, survey.fd, name):
        return False
    _read_database(survey, name)
    return True


def _read_database(survey: Survey, base: bytes) -> None:
    """Read it with its log as one state; the stability of each single part does not matter."""
    read = partial(_read_part, survey, base)
    if not read_as_one(survey.fs, survey.walker.databases, survey.fd, base, read):
        survey.skip(base, SkipReason.UNSTABLE)


def _read_part(survey: Survey, base: bytes, name: bytes) -> PartRead:
    path = join(survey.path, name)
    survey.skipped = [note for note in survey.skipped if note.path != path]
    try:
        status = survey.fs.stat(name, dir_fd=survey.fd, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            if name == base:
                raise TypeChanged
            survey.files.pop(name, None)
            return PartRead(stable=False, state=None)
        stable = survey.keep_known(name, path, status) or survey.capture(name, status)
    except FileNotFoundError:
        survey.files.pop(name, None)
        return PartRead(stable=True, state=None)
    row = survey.files.get(name)
    state = None if row is None else (row.inode, row.size, row.mtime_ns, row.ctime_ns)
    return PartRead(stable, state)


def _read_journal(survey: Survey, name: bytes, base: bytes, status: os.stat_result) -> None:
    """A journal can roll the database back. Beside a different state of the database, it would
    destroy it. So a journal that is being written is left out."""
    stable = survey.capture(name, status)
    row = survey.files.get(base)
    now = survey.fs.stat(base, dir_fd=survey.fd, follow_symlinks=False)
    if not stable or row is None or row[:5] != numbers_of(now):
        survey.files.pop(name, None)
        survey.skip(name, SkipReason.TRANSACTION)


def is_database(fs: Filesystem, dir_fd: int, name: bytes) -> bool:
    return _beginning(fs, dir_fd, name, len(HEADER)) == HEADER


def read_as_one(
    fs: Filesystem,
    databases: LiveDatabases | None,
    dir_fd: int,
    name: bytes,
    read: Callable[[bytes], PartRead],
) -> bool:
    """Call `read` for the database and then for its log, until both belong to one state. Without
    `databases`, the database cannot be held meanwhile."""
    for attempt in range(_ATTEMPTS):
        with contextlib.ExitStack() as held:
            is_held = False
            if attempt > 0 and databases is not None:
                is_held = held.enter_context(databases.hold_database(name, dir_fd=dir_fd))
            if _read_once(fs, dir_fd, name, read, is_held=is_held):
                return True
    return False


def _read_once(
    fs: Filesystem, dir_fd: int, name: bytes, read: Callable[[bytes], PartRead], *, is_held: bool
) -> bool:
    log = name + LOG
    log_before = _beginning(fs, dir_fd, log, LOG_HEADER_BYTES)
    before = _state(fs, dir_fd, name)
    part = read(name)
    read(log)
    log_after = _beginning(fs, dir_fd, log, LOG_HEADER_BYTES)
    if log_before or log_after:
        return log_before == log_after
    return before == part.state and (part.stable or is_held)


def _beginning(fs: Filesystem, dir_fd: int, name: bytes, length: int) -> bytes:
    """Empty if it is missing, unreadable or no regular file: a pipe is not opened."""
    try:
        if not stat.S_ISREG(fs.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            return b""
        fd = fs.open(name, FILE_FLAGS, dir_fd=dir_fd)
    except OSError:
        return b""
    try:
        return fs.pread(fd, length, 0)
    except OSError:
        return b""
    finally:
        fs.close(fd)


def _state(fs: Filesystem, dir_fd: int, name: bytes) -> tuple[int, ...] | None:
    try:
        status = fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
