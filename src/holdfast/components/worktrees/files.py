"""The files of one worktree: looked at, read, written and removed without ever following a link.

Every path is reached from the top of the worktree, directory by directory, by handle. What is
written appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from blake3 import blake3

from holdfast.components.worktrees.states import EXECUTABLE, FILE, GONE, LINK
from holdfast.domain.ids import Digest
from holdfast.domain.paths import STAGING_PREFIX
from holdfast.domain.trees.objects import digest_of

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
NOTHING = digest_of(b"")


class WorktreeFiles:
    """`top` is the worktree's directory."""

    def __init__(self, top: bytes) -> None:
        self._top = top

    def kind(self, path: bytes) -> str | None:
        """None for what is neither file nor link."""
        try:
            with self._parent(path) as (parent, name):
                mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        except OSError as error:
            if error.errno in _NOT_THERE:
                return GONE
            raise
        if stat.S_ISLNK(mode):
            return LINK
        if stat.S_ISREG(mode):
            return EXECUTABLE if mode & 0o100 else FILE
        return None

    def look(self, path: bytes) -> tuple[str | None, Digest]:
        """Kind, and the digest of what is there."""
        kind = self.kind(path)
        if kind is None or kind == GONE:
            return kind, NOTHING
        whole = blake3()
        for block in self.read(path, kind):
            whole.update(block)
        return kind, Digest(whole.digest())

    def read(self, path: bytes, kind: str) -> Iterator[bytes]:
        with self._parent(path) as (parent, name):
            if kind == LINK:
                yield os.readlink(name, dir_fd=parent)
                return
            fd = os.open(name, _READ, dir_fd=parent)
        try:
            while block := os.read(fd, _BLOCK_BYTES):
                yield block
        finally:
            os.close(fd)

    def write(self, path: bytes, kind: str, pieces: Iterator[bytes]) -> None:
        with self._parent(path, make=True) as (parent, name):
            beside = STAGING_PREFIX + name[:200]
            with contextlib.suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=parent)
            if kind == LINK:
                os.symlink(b"".join(pieces), beside, dir_fd=parent)
            else:
                _write_file(parent, beside, 0o755 if kind == EXECUTABLE else 0o644, pieces)
            os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
            os.fsync(parent)

    def remove(self, path: bytes) -> None:
        """And directories that are empty then."""
        try:
            with self._parent(path) as (parent, name):
                os.unlink(name, dir_fd=parent)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return
            raise
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            try:
                with self._parent(path) as (parent, name):
                    os.rmdir(name, dir_fd=parent)
            except OSError:
                return

    @contextmanager
    def _parent(self, path: bytes, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        *above, name = path.split(b"/")
        fd = os.open(self._top, _DIRECTORY)
        try:
            for part in above:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=fd)
                below = os.open(part, _DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd, name
        finally:
            os.close(fd)


def _write_file(parent: int, name: bytes, mode: int, pieces: Iterator[bytes]) -> None:
    fd = os.open(name, _NEW, mode, dir_fd=parent)
    try:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
