"""A new reference of ours, written as git writes one: less than the start of a process.

    directories → NAME.lock, which only one can make → its content → in place of NAME

Guarantees: while the lock is there no git touches the reference. It is in force only when its
content is on disk, and what the caller has put there first; `place` returns when its name is on
disk as well. No link is followed on the way. What a crash leaves is the lock alone.

Only for repositories that keep references as files, and for names that nobody can have used.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast.components.git.durability import sync_all
from holdfast.components.git.finding import Repository

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NewReference:
    """Locked, with the commit in the file of the lock; `fd` is that file, to be synced."""

    def __init__(self, name: bytes, directory: int, fd: int, changed: Sequence[int]) -> None:
        """`changed` are directories above in which another one was made."""
        self._name = name
        self._directory = directory
        self._changed = changed
        self._locked = True
        self.fd = fd

    def place(self) -> None:
        """Put it in force; to be called when `fd` is synced."""
        at = self._directory
        os.rename(self._name + b".lock", self._name, src_dir_fd=at, dst_dir_fd=at)
        self._locked = False
        sync_all([*self._changed, at])

    def give_up(self) -> None:
        """Nothing when it is in force: a lock of that name is somebody else's then."""
        if self._locked:
            os.unlink(self._name + b".lock", dir_fd=self._directory)


@contextmanager
def new_reference(repository: Repository, ref: bytes, commit: str) -> Iterator[NewReference]:
    """`OSError` when somebody has the lock, or the reference, or something else is in the way."""
    names = ref.split(b"/")
    with contextlib.ExitStack() as opened:
        at, changed = os.open(repository.shared(names[0]), _DIRECTORY), list[int]()
        opened.callback(os.close, at)
        allowed = stat.S_IMODE(os.fstat(at).st_mode)
        for name in names[1:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
                os.chmod(name, allowed, dir_fd=at)
                changed.append(at)
            at = os.open(name, _DIRECTORY, dir_fd=at)
            opened.callback(os.close, at)
        fd = os.open(names[-1] + b".lock", _NEW, 0o600, dir_fd=at)
        opened.callback(os.close, fd)
        mine = NewReference(names[-1], at, fd, changed)
        opened.callback(mine.give_up)
        if _is_there(names[-1], at):
            raise FileExistsError(os.fsdecode(ref))
        os.write(fd, commit.encode() + b"\n")
        os.fchmod(fd, 0o666 & allowed)
        yield mine


def _is_there(name: bytes, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
