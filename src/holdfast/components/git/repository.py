"""A git repository on disk: finding it, and reading, writing and locking its small files.

The repository is found as git finds it: the nearest `.git` from the workspace upwards, a directory
or a file that names one (a linked worktree, a submodule). A repository above the workspace counts
only if it belongs to the current user, because anyone may create `.git` in a shared directory.

Files are read and written directly, because starting a process costs more than all of them. No
file is trusted: only regular files are read, never more than a limit, and a named pipe never
blocks.

Locks on an index or a reference are taken as git does. The new content is written beside it and
then linked to the name of the lock, such as `index.lock`. While both names exist, the lock is
Holdfast's, and the holder of the store's lock may remove it after a crash. Git's own lock has one
name.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.components.files import blocks_of, new_file, write_all
from holdfast.ports.component import ComponentProblem
from holdfast.values.classes import dataclass, replace

_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class TooLarge(Exception):
    """A file larger than git ever writes for this purpose."""


def read_small(path: bytes, limit_bytes: int) -> bytes | None:
    """The content; None if there is no regular file. `TooLarge` beyond the limit."""
    try:
        fd = os.open(path, _READ_FLAGS)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > limit_bytes:
            raise TooLarge(os.fsdecode(path))
        return os.read(fd, limit_bytes)
    except IsADirectoryError:
        return None
    finally:
        os.close(fd)


@contextlib.contextmanager
def opened(path: bytes) -> Iterator[int | None]:
    """A handle on the current regular file: git replaces files and never edits them."""
    try:
        fd = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        yield None
        return
    try:
        yield fd if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def read_whole(path: bytes) -> bytes:
    """A file that may be large; empty if there is none."""
    with opened(path) as fd:
        return b"" if fd is None else b"".join(blocks_of(fd))


def read_end(path: bytes, most_bytes: int) -> bytes:
    """The last bytes of a file of any length; empty if it cannot be read."""
    try:
        with opened(path) as fd:
            if fd is None:
                return b""
            size = os.fstat(fd).st_size
            return os.pread(fd, most_bytes, max(size - most_bytes, 0))
    except OSError:
        return b""


def replace_file(path: bytes, data: bytes, mode: int) -> None:
    """Write a file durably, completely or not at all."""
    temporary = path + b".holdfast"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    write_new(temporary, [data], mode)
    os.replace(temporary, path)


def write_new(path: bytes, pieces: Iterable[bytes], mode: int) -> None:
    """A new durable file; `FileExistsError` if the name exists."""
    with new_file(path, mode) as fd:
        for piece in pieces:
            write_all(fd, piece)
        os.fchmod(fd, mode)


def sync_directory(path: bytes) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_LINK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Repository:
    """`git_dir` has this worktree's own files (HEAD, index), `common_dir` the shared ones. `ours`
    are branches that Holdfast itself writes: not the user's work."""

    top: bytes
    git_dir: bytes
    common_dir: bytes
    ours: frozenset[bytes] = frozenset()

    def own(self, *names: bytes) -> bytes:
        return os.path.join(self.git_dir, *names)

    def shared(self, *names: bytes) -> bytes:
        return os.path.join(self.common_dir, *names)

    def prefix(self, workspace: bytes) -> bytes:
        """The path from the top of the working tree to the workspace, with a slash if any."""
        below = os.path.relpath(workspace, self.top)
        return b"" if below == b"." else below + b"/"


def find_repository(workspace: Path, *, ours: frozenset[bytes] = frozenset()) -> Repository | None:
    """None if there is none. A broken one is found as well, if it was a repository once."""
    at = os.fsencode(workspace)
    inside = True
    while True:
        found = _repository_at(at, inside)
        if found is not None:
            return replace(found, ours=ours) if ours else found
        above = os.path.dirname(at)
        if above == at:
            return None
        at, inside = above, False


def require_repository(workspace: Path, *, ours: frozenset[bytes] = frozenset()) -> Repository:
    repository = find_repository(workspace, ours=ours)
    if repository is None:
        raise ComponentProblem("the workspace is no longer in a git repository")
    return repository


def repository_at(top: bytes) -> Repository | None:
    """The repository in this directory itself."""
    return _repository_at(top, inside=True)


def _repository_at(top: bytes, inside: bool) -> Repository | None:
    link = os.path.join(top, b".git")
    try:
        status = os.stat(link)
    except OSError:
        return None
    if not inside and status.st_uid != os.geteuid():
        return None
    if stat.S_ISDIR(status.st_mode):
        git_dir = link
    elif stat.S_ISREG(status.st_mode):
        git_dir = linked_directory(top) or link
    else:
        return None
    common = common_directory(git_dir)
    # Ignore a directory of that name that never was a repository.
    if git_dir != link and not os.path.isdir(git_dir):
        return Repository(top, git_dir, git_dir)
    return Repository(top, git_dir, common) if os.path.isdir(common + b"/objects") else None


def linked_directory(top: bytes) -> bytes | None:
    """The directory that the `.git` file of a worktree or submodule names."""
    text = read_small(os.path.join(top, b".git"), _LINK_BYTES)
    if text is None or not text.startswith(b"gitdir:"):
        return None
    return os.path.normpath(os.path.join(top, text[len(b"gitdir:") :].strip(b" \n")))


def common_directory(git_dir: bytes) -> bytes:
    text = read_small(os.path.join(git_dir, b"commondir"), _LINK_BYTES)
    if text is None:
        return git_dir
    return os.path.normpath(os.path.join(git_dir, text.strip(b"\n")))


def own_copy(repository: Repository, owner: str) -> bytes:
    """The second name of a lock that this store holds."""
    return repository.own(b"index.holdfast-" + owner.encode())


def take_lock(repository: Repository, owner: str, pieces: Iterable[bytes], mode: int) -> None:
    """Take `index.lock` with these bytes, durably; `ComponentProblem` if another process has
    it."""
    take_lock_at(repository.own(b"index.lock"), own_copy(repository, owner), pieces, mode)


def take_lock_at(lock: bytes, copy: bytes, pieces: Iterable[bytes], mode: int) -> None:
    """The same for any lock; `copy` is its second name."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(copy)
    try:
        write_new(copy, pieces, mode)
        os.link(copy, lock)
    except FileExistsError:
        os.unlink(copy)
        raise ComponentProblem(
            f"{os.fsdecode(lock)} exists: another git process is running, or has crashed"
        ) from None
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(copy)
        raise


def remove_own_lock(repository: Repository, owner: str) -> None:
    """Remove the lock of an interrupted restore; called only with the store's lock held."""
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
