"""Databases in a scan: which files belong to one, and capturing it as one state.

A SQLite database is captured with its log while others write to it:

    the log's beginning → the database → the log → the log's beginning again
    same beginning: everything that was moved into the database meanwhile is still in the log too
    otherwise once more, with the database held by a reading transaction

Guarantee: what is reported as whole is a state that the database had. Where no log is in use, that
is the database file alone, unchanged while it was read.
"""

from __future__ import annotations

import contextlib
import os
import stat
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
)
from holdfast.engine.scan.directory_state import numbers_of
from holdfast.ports.filesystem import FILE_FLAGS, Filesystem
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.engine.scan.survey import Survey
    from holdfast.ports.filesystem import LiveDatabases

_ATTEMPTS = 4


class Swapped(Exception):
    """A name became something else between two looks at it; the directory is surveyed again."""


class PartRead(NamedTuple):
    """A file that was stored, if it is there: the numbers it had at the end of being read (the
    database is no longer held when its handle is closed), and whether it was one state of it."""

    stable: bool
    state: tuple[int, ...] | None


def has_parts(name: bytes, present: Collection[bytes]) -> bool:
    """Whether what a file is decides about files beside it, or they about it."""
    return database_of(name) in present or any(name + each in present for each in COMPANIONS)


def independent_files(names: Collection[bytes]) -> set[bytes]:
    """Names of files that are not part of a database. A log may bring its database with it, and
    then before or after others: such a database is left out as well."""
    with_log = {name.removesuffix(LOG) for name in names if name.endswith(LOG)}
    return {name for name in names if not name.endswith(COMPANIONS)} - with_log


def is_part(survey: Survey, name: bytes) -> bool:
    """Whether a file looks like part of a database: the names tell, its beginning decides."""
    return database_of(name) in survey.names or name + LOG in survey.names


def has_base_name(survey: Survey, name: bytes) -> bool:
    """Whether there is a file that would be its database."""
    return database_of(name) in survey.names


def depends(survey: Survey, name: bytes) -> bool:
    """Whether another file decides what this one is. A log brings its database with it, even
    one that rules would leave out."""
    base, memory = database_of(name), name.endswith(SHARED_MEMORY)
    return base in survey.names and (memory or base not in survey.files)


def has_owner(survey: Survey, name: bytes) -> bool:
    """Whether its database is captured."""
    return database_of(name) in survey.files


def group(survey: Survey, name: bytes) -> list[bytes]:
    """A database goes with its log: one without the other is another state."""
    base = database_of(name)
    base = base if base in survey.read_together else name
    parts = {base, base + LOG} if base in survey.read_together else {name}
    return sorted(parts & set(survey.names))


def is_companion(survey: Survey, name: bytes, status: os.stat_result) -> bool:
    """Whether a file is part of a database that is captured."""
    base = database_of(name)
    if base not in survey.files or not stat.S_ISREG(status.st_mode):
        return False
    own = name != base + SHARED_MEMORY or has_size_of_shared_memory(status.st_size)
    return own and is_database(survey.fs, survey.fd, base)


def read_part(survey: Survey, name: bytes, status: os.stat_result) -> None:
    """Take in a file that looks like part of a database, if it is one with all that is read with
    it."""
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
    """Whether a file that changed while it was read is a database, which is read as one."""
    if not is_database(survey.fs, survey.fd, name):
        return False
    _read_database(survey, name)
    return True


def _read_database(survey: Survey, base: bytes) -> None:
    """With its log, as one state; whatever a part of it says about itself does not count."""
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
                raise Swapped
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
    """A journal contains what is needed to roll the database back: beside another state of it, it
    would destroy it. One that is being written is therefore left out."""
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
    """Call `read` for the database and then for its log, until both are of one state. Without
    `databases` it cannot be held for that."""
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
    """Nothing when it is not there, cannot be read or is no plain file: a pipe is not opened."""
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
