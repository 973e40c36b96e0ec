"""The real file system: `os` functions, and the few Linux calls that Python does not wrap.

If the system has no single call for moving without replacing, it takes several steps:

    to a free name   link there → unlink here; a directory, which cannot be linked: rename
    an exchange      the other one aside → this one to its name → the one aside to this one's name

Guarantees: an interrupted move (Ctrl-C) is completed or rolled back. A name that was taken
meanwhile is not touched; a file that then has no place stays aside, next to the one that was to
move, with a suffix that the port defines. Not guaranteed: that a crash in between leaves no trace,
or that an empty directory, created at that moment at the destination, is kept.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.adapters.local.linux_calls import (
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    rename_with_flags,
    stat_all,
    stat_numbers,
    sync_file_system,
    write_pages_out,
)
from holdfast.ports.filesystem import SET_ASIDE

if TYPE_CHECKING:
    import signal

    from holdfast.domain.sqlite_files import DatabaseJob, Written
else:
    import _signal as signal  # built in; `signal` turns its numbers into an enum while it loads

_HAS_PATH_HANDLES = hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd")
_HAS_LEASES = hasattr(fcntl, "F_SETLEASE")
_HAS_XATTRS = hasattr(os, "listxattr")
_ENCODING, _ENCODING_ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()

# Every file that is read is tested with a lease. These are plain names because looking one up in a
# module, or in an enumeration, costs as much as the call.
_fcntl = fcntl.fcntl
_SIGURG = int(signal.SIGURG)
_F_RDLCK, _F_UNLCK = fcntl.F_RDLCK, fcntl.F_UNLCK
_F_SETSIG, _F_SETLEASE = getattr(fcntl, "F_SETSIG", -1), getattr(fcntl, "F_SETLEASE", -1)


class LocalFilesystem:
    """A `holdfast.ports.filesystem.Filesystem` and a `holdfast.ports.live_database.LiveDatabases`;
    see there for the contract of each member."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    stat = staticmethod(os.stat)
    fstat = staticmethod(os.fstat)
    read = staticmethod(os.read)
    pread = staticmethod(os.pread)
    write = staticmethod(os.write)
    fsync = staticmethod(sync_to_disk)
    ftruncate = staticmethod(os.ftruncate)
    lseek = staticmethod(os.lseek)
    fchmod = staticmethod(os.fchmod)
    fchown = staticmethod(os.fchown)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    unlink = staticmethod(os.unlink)
    symlink = staticmethod(os.symlink)
    readlink = staticmethod(os.readlink)
    rename = staticmethod(os.rename)
    stat_all = staticmethod(stat_all)
    stat_numbers = staticmethod(stat_numbers)

    @staticmethod
    def set_mode(name: bytes, mode: int, *, dir_fd: int) -> None:
        if not _HAS_PATH_HANDLES:
            os.chmod(name, mode, dir_fd=dir_fd, follow_symlinks=False)
            return
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{fd}", mode)
        finally:
            os.close(fd)

    @staticmethod
    def may_chown() -> bool:
        return os.geteuid() == 0

    @staticmethod
    def list_names(fd: int) -> list[bytes]:
        # Like `os.fsencode`, which checks the type of each name.
        return [name.encode(_ENCODING, _ENCODING_ERRORS) for name in os.listdir(fd)]

    @staticmethod
    def link(source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        os.link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=False)

    @staticmethod
    def set_times(name: bytes, mtime_ns: int, *, dir_fd: int) -> None:
        os.utime(name, ns=(mtime_ns, mtime_ns), dir_fd=dir_fd, follow_symlinks=False)

    @staticmethod
    def sync_all(fd: int) -> None:
        sync_file_system(fd)

    @staticmethod
    def sync_everything() -> None:
        os.sync()

    @staticmethod
    def rename_new(source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if not rename_with_flags(source, target, src_dir_fd, dst_dir_fd, RENAME_NOREPLACE):
            move_new(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    @staticmethod
    def exchange(one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if not rename_with_flags(one, other, src_dir_fd, dst_dir_fd, RENAME_EXCHANGE):
            exchange(one, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    @staticmethod
    def is_open_for_writing(fd: int) -> bool | None:
        """A read lease is granted only while there is no writer. It is returned immediately; if a
        program opens the file in between, the notification signal is ignored."""
        if not _HAS_LEASES:
            return None
        try:
            _fcntl(fd, _F_SETSIG, _SIGURG)
            _fcntl(fd, _F_SETLEASE, _F_RDLCK)
            _fcntl(fd, _F_SETLEASE, _F_UNLCK)
        except BlockingIOError:
            return True
        except OSError:  # another user's file, or a file system without leases
            return None
        return False

    @staticmethod
    def expose_mapped_writes(fd: int) -> None:
        """Pages that are written out become write-protected, so that the next write to one is
        noticed."""
        with suppress(OSError):  # a failing disk reports that to writers, and to us on read
            write_pages_out(fd)

    @staticmethod
    def hold_database(name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        from holdfast.adapters.local.live_database import (
            hold,  # late: few workspaces have a busy database
        )

        return hold(name, dir_fd)

    @staticmethod
    def pause_database(name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        from holdfast.adapters.local.live_database import (
            pause,  # late: few restores meet a database
        )

        return pause(name, dir_fd)

    @staticmethod
    def is_database_in_use(name: bytes, *, dir_fd: int) -> bool:
        from holdfast.adapters.local.live_database import is_in_use  # late, like above

        return is_in_use(name, dir_fd)

    @staticmethod
    def overwrite_database(job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        from holdfast.adapters.local.live_database import overwrite_in_process  # late, like above

        return overwrite_in_process(job, dir_fd, area_fd)

    @staticmethod
    def list_xattrs(fd: int) -> list[str]:
        if not _HAS_XATTRS:
            return []
        try:
            names = os.listxattr(fd)
        except OSError:  # not supported by the file system
            return []
        return names and [name for name in names if not name.startswith("security.selinux")]

    @staticmethod
    def free_bytes(path: bytes) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    @staticmethod
    def mount_points_below(path: bytes) -> list[bytes]:
        from holdfast.adapters.local.mounts import mount_points_below

        return mount_points_below(path)


def move_new(source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """See `Filesystem.rename_new`."""
    if stat.S_ISDIR(_status(source, src_dir_fd).st_mode):
        _move_directory(source, target, src_dir_fd, dst_dir_fd)
        return
    try:
        os.link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=False)
        os.unlink(source, dir_fd=src_dir_fd)
    except FileExistsError:
        raise
    except BaseException:
        if _are_one(source, src_dir_fd, target, dst_dir_fd):
            os.unlink(target, dir_fd=dst_dir_fd)
        raise


def exchange(one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """See `Filesystem.exchange`."""
    aside = one + SET_ASIDE
    try:
        os.rename(other, aside, src_dir_fd=dst_dir_fd, dst_dir_fd=src_dir_fd)
        move_new(one, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        os.rename(aside, one, src_dir_fd=src_dir_fd, dst_dir_fd=src_dir_fd)
    except BaseException:
        if _exists(aside, src_dir_fd):
            if not _exists(one, src_dir_fd):  # only the last step is missing
                os.rename(aside, one, src_dir_fd=src_dir_fd, dst_dir_fd=src_dir_fd)
            else:
                with contextlib.suppress(FileExistsError):
                    move_new(aside, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        raise


def _move_directory(source: bytes, target: bytes, src_dir_fd: int, dst_dir_fd: int) -> None:
    if _exists(target, dst_dir_fd):
        raise _name_exists_error(target)
    try:
        os.rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise _name_exists_error(target) from None
        raise


def _status(name: bytes, dir_fd: int) -> os.stat_result:
    return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)


def _exists(name: bytes, dir_fd: int) -> bool:
    try:
        _status(name, dir_fd)
    except FileNotFoundError:
        return False
    return True


def _are_one(one: bytes, one_fd: int, other: bytes, other_fd: int) -> bool:
    try:
        return os.path.samestat(_status(one, one_fd), _status(other, other_fd))
    except FileNotFoundError:
        return False


def _name_exists_error(name: bytes) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
