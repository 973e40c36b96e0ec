"""Exchanging a database file between two transactions, and not in the middle of one.

A journal that outlives the file it was made for would be rolled back into the one that took its
place. What can be a database is told by its size, which saves a look at every other file.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.domain.entries import FileEntry
from holdfast.domain.restore_plans import Step
from holdfast.ports.filesystem import Filesystem

_SMALLEST_PAGE_BYTES = 512


@contextmanager
def between_transactions(fs: Filesystem, step: Step, dir_fd: int, name: bytes) -> Iterator[None]:
    """For the file that a step displaces; an `OSError` when a transaction does not end."""
    size = step.before.size if isinstance(step.before, FileEntry) else 0
    if size == 0 or size % _SMALLEST_PAGE_BYTES:
        yield
        return
    with fs.pause_database(name, dir_fd=dir_fd) as paused:
        if not paused:
            raise OSError(errno.EBUSY, "a transaction of this database is under way")
        yield


@contextmanager
def rather_between_transactions(fs: Filesystem, dir_fd: int, name: bytes) -> Iterator[None]:
    """For taking a restore back, which has to go on in any case."""
    with fs.pause_database(name, dir_fd=dir_fd):
        yield
