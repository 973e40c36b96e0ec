"""The few calls of Linux that Python does not wrap, through the C library."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2


def _load_libc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    return ctypes.CDLL(None, use_errno=True)


_libc = _load_libc()
_renameat2 = getattr(_libc, "renameat2", None)
_syncfs = getattr(_libc, "syncfs", None)
_sync_file_range = getattr(_libc, "sync_file_range", None)
_malloc_trim = getattr(_libc, "malloc_trim", None)
_ALL = ctypes.c_int64(0)
_WAIT_WRITE_WAIT = ctypes.c_uint(7)


def rename_with_flags(source: bytes, target: bytes, src: int, dst: int, flags: int) -> bool:
    """True when done; False when the system or the file system has no such call."""
    if _renameat2 is None:
        return False
    while _renameat2(src, source, dst, target, ctypes.c_uint(flags)) != 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EINVAL):
            return False
        if number != errno.EINTR:  # Python's own functions go on after a signal, too
            raise OSError(number, os.strerror(number), target)
    return True


def give_memory_back() -> None:
    """Return to the system what is free between what is in use, where the C library keeps it."""
    if _malloc_trim is not None:
        _malloc_trim(ctypes.c_size_t(0))


def write_pages_out(fd: int) -> None:
    """Write what is in memory of the file to its place, without making it durable, which would
    take much longer; durable where there is no such call."""
    if _sync_file_range is None:
        os.fsync(fd)
        return
    while _sync_file_range(fd, _ALL, _ALL, _WAIT_WRITE_WAIT) != 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def sync_file_system(fd: int) -> None:
    """`syncfs` where there is one; it reports write-back errors like fsync on Linux ≥ 5.8."""
    if _syncfs is None:
        os.sync()
        return
    while _syncfs(fd) != 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))
