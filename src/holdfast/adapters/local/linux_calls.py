"""The few calls of Linux that Python does not wrap, through the C library.

`stat_all` looks at many files of one directory without making an object for each:

    one `fstatat` a name, answers side by side in one buffer → the buffer as bytes
    equal bytes are equal answers; `stat_numbers` takes the few numbers out where they are not

Making an `os.stat_result` takes several times as long as the system call, and an unchanged file
needs none. Guarantee: where the layout of the system's answer is not known, or a name cannot be
looked at, there is no answer, and the caller asks for each name by itself. Not guaranteed: equal
bytes for equal files, since reading a file may change the time of its last access.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import threading
from collections.abc import Sequence
from typing import Any

from holdfast.ports.filesystem import StatNumbers

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


_LAYOUTS = {
    "x86_64": struct.Struct("<8xQ8xI20xQ32xqqqq24x"),
    "aarch64": struct.Struct("<8xQI28xQ32xqqqq8x"),
}
"""inode, mode, size, mtime in seconds and nanoseconds, ctime in the same."""

_HERE = -100
_NOT_FOLLOWING = ctypes.c_int(0x100)
_AT_ONCE = 256
_NS = 1_000_000_000

_layout = _LAYOUTS.get(os.uname().machine, struct.Struct("<"))
_fstatat: Any = getattr(ctypes.CDLL(None), "fstatat", None) if sys.platform == "linux" else None


class _Room(threading.local):
    """Room for answers, and the places at which they begin; for each thread its own, since others
    run while the system answers."""

    places: list[ctypes.c_void_p] | None = None
    """None before the first use; none at all where there is no such way."""

    def prepare(self) -> list[ctypes.c_void_p]:
        room = ctypes.create_string_buffer(_AT_ONCE * _layout.size)
        first = ctypes.addressof(room)
        self.view = memoryview(room).cast("B")
        self.places = [ctypes.c_void_p(first + n * _layout.size) for n in range(_AT_ONCE)]
        if _layout.size == 0 or _fstatat is None or not self._is_right(self.places[0]):
            self.places = []
        return self.places

    def _is_right(self, place: ctypes.c_void_p) -> bool:
        """Whether the layout is the one that this system has: not believed, but tried."""
        try:
            said = os.stat(b"/", follow_symlinks=False)
        except OSError:
            return False
        failed = _fstatat(_HERE, b"/", place, _NOT_FOLLOWING)
        expected = (said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns, said.st_mode)
        return not failed and stat_numbers(bytes(self.view[: _layout.size])) == [expected]


_room = _Room()


def stat_all(names: Sequence[bytes], *, dir_fd: int) -> bytes | None:
    """See `holdfast.ports.filesystem.Filesystem`."""
    places = _room.places
    if places is None:
        places = _room.prepare()
    if len(names) > len(places):
        return _in_parts(names, dir_fd) if places else None
    for name, place in zip(names, places):  # noqa: B905 - there are more places
        if _fstatat(dir_fd, name, place, _NOT_FOLLOWING):
            return None
    return bytes(_room.view[: len(names) * _layout.size])


def _in_parts(names: Sequence[bytes], dir_fd: int) -> bytes | None:
    parts = []
    for start in range(0, len(names), _AT_ONCE):
        part = stat_all(names[start : start + _AT_ONCE], dir_fd=dir_fd)
        if part is None:
            return None
        parts.append(part)
    return b"".join(parts)


def stat_numbers(told: bytes) -> list[StatNumbers]:
    """See `holdfast.ports.filesystem.Filesystem`."""
    return [
        (inode, size, mtime * _NS + mtime_ns, ctime * _NS + ctime_ns, mode)
        for inode, mode, size, mtime, mtime_ns, ctime, ctime_ns in _layout.iter_unpack(told)
    ]
