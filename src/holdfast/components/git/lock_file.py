"""A lock as git takes it, on an index or a reference; one that a crash of ours left is told from
git's.

The new content is written beside and then linked to the name of the lock, such as `index.lock`: as
long as both names are there the lock is ours, and whoever holds the store may take it away. A lock
of git has one name.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from holdfast.components.git.plain_files import write_new
from holdfast.components.git.repository import Repository
from holdfast.ports.component import ComponentProblem


def own_copy(repository: Repository, owner: str) -> bytes:
    """The second name of a lock that this store has taken."""
    return repository.own(b"index.holdfast-" + owner.encode())


def take_lock(repository: Repository, owner: str, pieces: Iterator[bytes], mode: int) -> None:
    """Let `index.lock` hold these bytes, durable; `ComponentProblem` when somebody has it."""
    take_lock_at(repository.own(b"index.lock"), own_copy(repository, owner), pieces, mode)


def take_lock_at(lock: bytes, copy: bytes, pieces: Iterable[bytes], mode: int) -> None:
    """The same for any lock; `copy` is its second name."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(copy)
    try:
        write_new(copy, iter(pieces), mode)
        os.link(copy, lock)
    except FileExistsError:
        os.unlink(copy)
        raise ComponentProblem(
            f"{os.fsdecode(lock)} is there: another git is at work, or has crashed"
        ) from None
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(copy)
        raise


def remove_own_lock(repository: Repository, owner: str) -> None:
    """Take away what a restore that was cut off left; called by the holder of the store only."""
    remove_own_lock_at(repository.own(b"index.lock"), own_copy(repository, owner))


def remove_own_lock_at(lock: bytes, copy: bytes) -> None:
    try:
        mine = os.lstat(copy)
    except FileNotFoundError:
        return
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(lock), mine):
            os.unlink(lock)
    os.unlink(copy)
