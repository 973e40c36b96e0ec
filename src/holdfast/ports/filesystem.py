"""The system calls that saving and restoring make, so that tests can make any one fail, record it
or kill the process at it.

Members have the signatures of the `os` functions, so the real adapter costs nothing on the hot
path. Every path argument is one name relative to `dir_fd` (I6), or an absolute path in the store.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Protocol, TypeAlias

StatNumbers: TypeAlias = tuple[int, int, int, int, int]
"""inode, size, mtime_ns, ctime_ns, mode: they identify an unchanged file."""

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
"""For everything that Holdfast creates for itself: only the user may read it."""

FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For reading in a workspace: no link is followed, and no pipe blocks."""

FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

DISK_RESERVE_BYTES = 64 << 20
"""Never filled: other programs, and Holdfast's own log, need room to finish."""

SET_ASIDE = b".aside"
"""The suffix of a file that waits during an exchange in several steps; see `exchange`."""


class Filesystem(Protocol):
    """Operations on a directory handle."""

    def open(self, path: bytes, flags: int, mode: int = ..., *, dir_fd: int | None = ...) -> int:
        """Open a file. Directories and files of the workspace are always opened with
        `O_NOFOLLOW`."""

    def close(self, fd: int) -> None: ...

    def stat(
        self, path: bytes, *, dir_fd: int | None = ..., follow_symlinks: bool = ...
    ) -> os.stat_result: ...

    def fstat(self, fd: int) -> os.stat_result: ...

    def stat_all(self, names: Sequence[bytes], *, dir_fd: int) -> bytes | None:
        """The stat results of each name, without following links, as bytes. Equal bytes mean that
        nothing that `stat` reports has changed. None if this is not supported, or if a name cannot
        be read; `stat` gives the reason."""

    def stat_numbers(self, packed: bytes) -> Sequence[StatNumbers]:
        """The numbers in a result of `stat_all`, in the order of the names."""

    def list_names(self, fd: int) -> list[bytes]:
        """The names in the directory, in no particular order, without `.` and `..`."""

    def read(self, fd: int, size: int) -> bytes: ...

    def pread(self, fd: int, size: int, offset: int) -> bytes: ...

    def write(self, fd: int, data: bytes) -> int: ...

    def fsync(self, fd: int) -> None:
        """Make the content of a file or directory durable. After an error, its state is unknown."""

    def sync_all(self, fd: int) -> None:
        """Make everything written so far on the file system of `fd` durable."""

    def sync_everything(self) -> None:
        """Write out everything written so far, on every file system. Failures are not reported."""

    def ftruncate(self, fd: int, length: int) -> None: ...

    def lseek(self, fd: int, position: int, how: int) -> int: ...

    def fchmod(self, fd: int, mode: int) -> None: ...

    def set_mode(self, name: bytes, mode: int, *, dir_fd: int) -> None:
        """Set the mode of `name` itself, even if it is unreadable, never that of a link's
        target."""

    def may_chown(self) -> bool:
        """Whether this process can change file owners, and so must preserve them."""

    def fchown(self, fd: int, uid: int, gid: int) -> None: ...

    def set_times(self, name: bytes, mtime_ns: int, *, dir_fd: int) -> None:
        """Set the modification time of `name` itself, never that of a link's target."""

    def mkdir(self, path: bytes, mode: int = ..., *, dir_fd: int | None = ...) -> None: ...

    def rmdir(self, path: bytes, *, dir_fd: int | None = ...) -> None: ...

    def unlink(self, path: bytes, *, dir_fd: int | None = ...) -> None: ...

    def symlink(self, target: bytes, path: bytes, *, dir_fd: int | None = ...) -> None: ...

    def readlink(self, path: bytes, *, dir_fd: int | None = ...) -> bytes: ...

    def link(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        """Add a second name for `source`; fails if `target` exists."""

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
        """Move without replacing; `FileExistsError` if `target` exists."""

    def exchange(self, one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        """Swap two existing names.

        If the system cannot do it in one step, `other` is first moved to the name `one` plus
        `SET_ASIDE`, so that no bytes are lost, only briefly absent. It stays there if the process
        dies in between, or with `FileExistsError` if its name was taken meanwhile."""

    def is_open_for_writing(self, fd: int) -> bool | None:
        """Whether any process can currently write to this file through a handle or a mapping; None
        if unknown."""

    def expose_mapped_writes(self, fd: int) -> None:
        """From now on, a write through a mapping changes this file's times, as far as the file
        system supports that."""

    def list_xattrs(self, fd: int) -> list[str]:
        """Extended attributes that a copy of the bytes would lose."""

    def free_bytes(self, path: bytes) -> int: ...

    def mount_points_below(self, path: bytes) -> list[bytes]:
        """Mount points inside a directory; empty if the system does not list them."""


def write_all(fs: Filesystem, fd: int, data: bytes | memoryview) -> None:
    """Write everything. `write` may write less than requested, which is not an error."""
    view = memoryview(data)
    while view:
        view = view[fs.write(fd, view) :]  # type: ignore[arg-type]
