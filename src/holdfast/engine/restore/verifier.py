"""Verifies a restore: reads every changed path back and compares it with the plan (RB-5)."""

from __future__ import annotations

import errno
import stat

from blake3 import blake3

from holdfast.domain.outcomes import PathProblem
from holdfast.domain.paths import basename, parent
from holdfast.domain.restore.plan import Step
from holdfast.domain.trees.entries import MODE_MASK, DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.domain.wording import count_words
from holdfast.engine.restore.database_files import is_made_by_opening
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import FILE_FLAGS, Filesystem

_BLOCK_BYTES = 1 << 20
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""A directory that became a file or a link counts as empty."""


def verify(
    vault: Vault, handles: DirectoryHandles, steps: list[Step], *, mode_mask: int
) -> list[PathProblem]:
    """The paths that differ from the steps' results. A path's last step counts."""
    final = {step.path: step for step in steps}
    problems: list[PathProblem] = []
    for number, (path, step) in enumerate(final.items()):
        vault.progress.advance("verifying files", number, len(final))
        try:
            wrong = _difference(vault.fs, handles, path, step.after, mode_mask)
        except OSError as error:
            if error.errno in _ABSENT:
                wrong = None if step.after is None else "it is missing"
            else:
                wrong = f"it cannot be read back: {error.strerror}"
        if wrong is not None:
            problems.append(PathProblem(path, wrong))
    return problems


def _difference(
    fs: Filesystem, handles: DirectoryHandles, path: bytes, expected: Entry | None, mode_mask: int
) -> str | None:
    dir_fd, name = handles.open(parent(path)), basename(path)
    status = fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if expected is None:
        return None if is_made_by_opening(fs, dir_fd, name, status) else "it is still there"
    if isinstance(expected, SymlinkEntry):
        if not stat.S_ISLNK(status.st_mode):
            return "it is not a symbolic link"
        return (
            None if fs.readlink(name, dir_fd=dir_fd) == expected.target else "it points elsewhere"
        )
    if isinstance(expected, DirectoryEntry):
        # Directory modes are set and checked after everything in them.
        return None if stat.S_ISDIR(status.st_mode) else "it is not a directory"
    wanted_mode = expected.mode & mode_mask
    if status.st_mode & MODE_MASK != wanted_mode:
        return f"its mode is {status.st_mode & MODE_MASK:o} instead of {wanted_mode:o}"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_size != expected.size:
        return f"it has {count_words(status.st_size, 'byte')} instead of {expected.size:,}"
    return _content_difference(fs, dir_fd, name, expected)


def _content_difference(
    fs: Filesystem, dir_fd: int, name: bytes, expected: FileEntry
) -> str | None:
    try:
        digest = digest_of_file(fs, dir_fd, name)
    except PermissionError:
        # The owner cannot read it because of its mode. The staged content was hashed while it was
        # written, and size and mode are correct.
        return None
    return None if digest == expected.digest else "its content differs"


def digest_of_file(fs: Filesystem, dir_fd: int, name: bytes) -> bytes:
    fd = fs.open(name, FILE_FLAGS, dir_fd=dir_fd)
    try:
        hasher = blake3()
        while block := fs.read(fd, _BLOCK_BYTES):
            hasher.update(block)
        return hasher.digest()
    finally:
        fs.close(fd)
