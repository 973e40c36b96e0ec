"""Exchanging a database file between two transactions, and not in the middle of one.

A journal that outlives the file it was made for would be rolled back into the one that took its
place. What can be a database is told by its size, which saves a look at every other file.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from holdfast.domain.paths import basename, parent
from holdfast.domain.restore.plan import UNDER_WAY, Step
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.vault import Vault
from holdfast.ports.live_database import LiveDatabases

_SMALLEST_PAGE_BYTES = 512


@contextmanager
def between_transactions(
    databases: LiveDatabases, step: Step, dir_fd: int, name: bytes
) -> Iterator[None]:
    """For the file that a step displaces; an `OSError` when a transaction does not end."""
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
    """For taking a restore back, which has to go on in any case."""
    with databases.pause_database(name, dir_fd=dir_fd):
        yield


@contextmanager
def no_transaction(vault: Vault, paths: Sequence[bytes]) -> Iterator[bool]:
    """Whether none of these databases is in the middle of a transaction, nor gets into one, for the
    block; False when one does not end for a while."""
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
        return True  # it has gone meanwhile, which the next look will tell
    return held.enter_context(databases.pause_database(basename(path), dir_fd=dir_fd))
