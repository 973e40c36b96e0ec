"""The system calls that saving and restoring make, so that tests can fail, record or kill any one.

Members have the shape of the `os` functions, so the real adapter costs nothing on the hot path.
Every path argument is one name relative to `dir_fd` (I6), or an absolute path of the store.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from holdfast.domain.sqlite_files import DatabaseJob, Written

StatNumbers: TypeAlias = tuple[int, int, int, int, int]
"""inode, size, mtime_ns, ctime_ns, mode: what an unchanged file is recognised by."""

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
"""Of everything that Holdfast makes for itself: only the user may read it."""

FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For reading in a workspace: no link is followed, and no pipe keeps anybody waiting."""

FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

SET_ASIDE = b".aside"
"""Behind the name of what waits while an exchange is made in steps; see `exchange`."""


class Filesystem(Protocol):
    """What a directory handle can be asked to do."""

    def open(self, path: bytes, flags: int, mode: int = ..., *, dir_fd: int | None = ...) -> int:
        """Open a file; directories and files of the workspace always with `O_NOFOLLOW`."""

    def close(self, fd: int) -> None: ...

    def stat(
        self, path: bytes, *, dir_fd: int | None = ..., follow_symlinks: bool = ...
    ) -> os.stat_result: ...

    def fstat(self, fd: int) -> os.stat_result: ...

    def stat_all(self, names: Sequence[bytes], *, dir_fd: int) -> bytes | None:
        """What the system says of each name, without following links, in one piece: equal bytes
        mean that nothing which `stat` tells has changed. None where that cannot be had, or a name
        cannot be looked at: `stat` tells why."""

    def stat_numbers(self, packed: bytes) -> Sequence[StatNumbers]:
        """The numbers in an answer of `stat_all`, in the order of the names."""

    def list_names(self, fd: int) -> list[bytes]:
        """The names in the directory, in no particular order, without `.` and `..`."""

    def read(self, fd: int, size: int) -> bytes: ...

    def pread(self, fd: int, size: int, offset: int) -> bytes: ...

    def write(self, fd: int, data: bytes) -> int: ...

    def fsync(self, fd: int) -> None:
        """Make the file's or directory's content durable; an error means nothing is known."""

    def sync_all(self, fd: int) -> None:
        """Make everything written so far on the file system of `fd` durable."""

    def ftruncate(self, fd: int, length: int) -> None: ...

    def lseek(self, fd: int, position: int, how: int) -> int: ...

    def fchmod(self, fd: int, mode: int) -> None: ...

    def set_mode(self, name: bytes, mode: int, *, dir_fd: int) -> None:
        """Set the mode of `name` itself, readable or not, never of what a link points to."""

    def may_chown(self) -> bool:
        """Whether this process can give files away, and so has to care whose they are."""

    def fchown(self, fd: int, uid: int, gid: int) -> None: ...

    def set_times(self, name: bytes, mtime_ns: int, *, dir_fd: int) -> None:
        """Set the modification time of `name` itself, never of what a link points to."""

    def mkdir(self, path: bytes, mode: int = ..., *, dir_fd: int | None = ...) -> None: ...

    def rmdir(self, path: bytes, *, dir_fd: int | None = ...) -> None: ...

    def unlink(self, path: bytes, *, dir_fd: int | None = ...) -> None: ...

    def symlink(self, target: bytes, path: bytes, *, dir_fd: int | None = ...) -> None: ...

    def readlink(self, path: bytes, *, dir_fd: int | None = ...) -> bytes: ...

    def link(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        """A second name for `source`; fails when `target` exists."""

    def rename(
        self,
        source: bytes,
        target: bytes,
        *,
        src_dir_fd: int | None = ...,
        dst_dir_fd: int | None = ...,
    ) -> None:
        """Move, replacing `target`."""

    def rename_new(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        """Move; `FileExistsError` when `target` exists, never replacing it."""

    def exchange(self, one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        """Swap two existing names. Where the system cannot do it in one step, `other` is first set
        aside as `one` with `SET_ASIDE` behind it, so that no bytes can be lost, only briefly be
        absent. It stays there if the process dies in between, and with `FileExistsError` if its
        name was taken meanwhile."""

    def is_open_for_writing(self, fd: int) -> bool | None:
        """Whether anybody can write to this file right now through a handle or a mapping; None
        when the system does not tell."""

    def expose_mapped_writes(self, fd: int) -> None:
        """From here on a write through a mapping changes the times of this file, as far as the
        file system can be brought to it."""

    def list_xattrs(self, fd: int) -> list[str]:
        """Names of extended attributes that a copy of the bytes would not carry."""

    def free_bytes(self, path: bytes) -> int: ...

    def mount_points_below(self, path: bytes) -> list[bytes]:
        """Where other file systems begin inside a directory; none where the system does not list
        them."""


class LiveDatabases(Protocol):
    """SQLite databases of the workspace that other programs have open: read, paused and written as
    they allow. Every name is relative to `dir_fd` (I6)."""

    def hold_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        """While it is held, a SQLite database is not rewritten, and its log is not restarted. False
        when that cannot be had. Closing a handle of the database may end it."""

    def pause_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        """For the block no process begins a transaction of a SQLite database with a rollback
        journal; False when one does not end. True for any other file."""

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        """Bring a live SQLite database to another state. Its users see the old one or the new one;
        after a crash at any point, too. `PerhapsWritten` means one of the two, any other `OSError`
        the old one."""


def write_all(fs: Filesystem, fd: int, data: bytes | memoryview) -> None:
    """`write` may take less than it is given; a short write is not an error."""
    view = memoryview(data)
    while view:
        view = view[fs.write(fd, view) :]  # type: ignore[arg-type]
