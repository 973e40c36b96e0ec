"""Whether a directory is the top of a git repository, and of which kind; git itself is not run.

    .git is a directory with HEAD and objects     → a repository
    .git is a file that leads to one with HEAD    → a submodule, or a repository kept elsewhere
    the same, and that one has a `commondir`      → a linked worktree

A worktree whose repository has forgotten it (`git worktree prune`) is a plain directory, as it is
for git.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from enum import Enum

from holdfast.domain.paths import GIT_DIRECTORY
from holdfast.ports.filesystem import Filesystem

_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LINK_BYTES = 4096
_LEADS_TO = b"gitdir:"


class RepositoryKind(Enum):
    CLONE = "a repository"
    SUBMODULE = "a submodule"
    LINKED_WORKTREE = "a linked worktree"


def repository_kind(
    fs: Filesystem, fd: int, names: Collection[bytes] | None = None
) -> RepositoryKind | None:
    """Of the open directory; `names` are those in it, where they are known."""
    if names is not None and GIT_DIRECTORY not in names:
        return None
    try:
        status = fs.stat(GIT_DIRECTORY, dir_fd=fd, follow_symlinks=True)
        if stat.S_ISDIR(status.st_mode):
            whole = _has(fs, fd, GIT_DIRECTORY, b"HEAD") and _has(fs, fd, GIT_DIRECTORY, b"objects")
            return RepositoryKind.CLONE if whole else None
        leads_to = _leads_to(fs, fd) if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None
    if leads_to is None or not _has(fs, fd, leads_to, b"HEAD"):
        return None
    linked = _has(fs, fd, leads_to, b"commondir")
    return RepositoryKind.LINKED_WORKTREE if linked else RepositoryKind.SUBMODULE


def _has(fs: Filesystem, fd: int, directory: bytes, name: bytes) -> bool:
    try:
        fs.stat(os.path.join(directory, name), dir_fd=fd, follow_symlinks=False)
    except (OSError, ValueError):
        return False
    return True


def _leads_to(fs: Filesystem, fd: int) -> bytes | None:
    """What the file `.git` says; relative to the directory, unless absolute."""
    file_fd = fs.open(GIT_DIRECTORY, _FILE_FLAGS, dir_fd=fd)
    try:
        text = fs.read(file_fd, _LINK_BYTES)
    finally:
        fs.close(file_fd)
    if not text.startswith(_LEADS_TO):
        return None
    return text[len(_LEADS_TO) :].strip(b" \r\n") or None
