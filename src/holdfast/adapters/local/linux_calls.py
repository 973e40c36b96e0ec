"""The few Linux calls that Python does not wrap, through the C library.

`stat_all` stats many files of one directory without creating an object for each:

    one `fstatat` per name, answers side by side in one buffer → the buffer as bytes
    equal bytes are equal answers; `stat_numbers` extracts the few numbers if they differ

Creating an `os.stat_result` takes several times as long as the system call, and an unchanged file
needs none. Guarantee: if the layout of the system's answer is unknown, or a name cannot be read,
there is no answer, and the caller stats each name separately. Not guaranteed: equal bytes for equal
files, because reading a file may change its access time.

`Inotify` names a directory by an open handle, so that no path is used across a check (I6): the link
`/proc/self/fd/N` leads only to the opened directory.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.ports.filesystem import StatNumbers
from holdfast.values.classes import NamedTuple

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
    """True when done; False if the system or the file system does not support it."""
    if _renameat2 is None:
        return False
    try:
        _call(_renameat2, src, source, dst, target, ctypes.c_uint(flags))
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EINVAL):
            return False
        error.filename = target
        raise
    return True


def release_memory() -> None:
    """Return free heap memory to the system, if the C library keeps it."""
    if _malloc_trim is not None:
        _malloc_trim(ctypes.c_size_t(0))


def write_pages_out(fd: int) -> None:
    """Write a file's dirty pages, without making them durable, which would take much longer.
    Durable if there is no such call."""
    if _sync_file_range is None:
        os.fsync(fd)
        return
    _call(_sync_file_range, fd, _ALL, _ALL, _WAIT_WRITE_WAIT)


def sync_file_system(fd: int) -> None:
    """`syncfs` if available; it reports write-back errors like fsync on Linux ≥ 5.8."""
    if _syncfs is None:
        os.sync()
        sync_to_disk(fd)  # empties the disk's own cache, too
        return
    _call(_syncfs, fd)


def _call(function: Any, *arguments: Any) -> None:
    while function(*arguments) != 0:
        if ctypes.get_errno() != errno.EINTR:  # Python's own functions retry after a signal too
            raise _last_error()


_LAYOUTS = {
    "x86_64": struct.Struct("<8xQ8xI20xQ32xqqqq24x"),
    "aarch64": struct.Struct("<8xQI28xQ32xqqqq8x"),
}
"""inode, mode, size, mtime in seconds and nanoseconds, and ctime likewise."""

_HERE = -100
_NOT_FOLLOWING = ctypes.c_int(0x100)
_AT_ONCE = 256
_NS = 1_000_000_000

_layout = _LAYOUTS.get(os.uname().machine, struct.Struct("<"))
_fstatat: Any = getattr(ctypes.CDLL(None), "fstatat", None) if sys.platform == "linux" else None


class _Room(threading.local):
    """A buffer for answers, and their addresses; one per thread, because others run during the
    system call."""

    places: list[ctypes.c_void_p] | None = None
    """None before the first use; empty if not supported."""

    def prepare(self) -> list[ctypes.c_void_p]:
        room = ctypes.create_string_buffer(_AT_ONCE * _layout.size)
        first = ctypes.addressof(room)
        self.view = memoryview(room).cast("B")
        self.places = [ctypes.c_void_p(first + n * _layout.size) for n in range(_AT_ONCE)]
        if _layout.size == 0 or _fstatat is None or not self._is_right(self.places[0]):
            self.places = []
        return self.places

    def _is_right(self, place: ctypes.c_void_p) -> bool:
        """Whether the layout matches this system, found by trying."""
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


def stat_numbers(packed: bytes) -> list[StatNumbers]:
    """See `holdfast.ports.filesystem.Filesystem`."""
    return [
        (inode, size, mtime * _NS + mtime_ns, ctime * _NS + ctime_ns, mode)
        for inode, mode, size, mtime, mtime_ns, ctime, ctime_ns in _layout.iter_unpack(packed)
    ]


MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000
IS_DIRECTORY = 0x40000000
_ONLY_DIRECTORIES = 0x01000000

DIRECTORY_EVENTS = (
    MODIFY
    | ATTRIB
    | CLOSE_WRITE
    | MOVED_FROM
    | MOVED_TO
    | CREATE
    | DELETE
    | DELETE_SELF
    | MOVE_SELF
    | _ONLY_DIRECTORIES
)

READ_BYTES = 1 << 18
_HEADER = struct.Struct("=iIII")


class Event(NamedTuple):
    """One entry of the queue; `watch` is -1 for an overflow, and `name` is empty for the
    directory."""

    watch: int
    mask: int
    name: bytes


class Inotify:
    """One instance: one queue, in the order of events."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._add = library.inotify_add_watch
        self._remove = library.inotify_rm_watch
        self.fd: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise _last_error()

    def add(self, fd: int, mask: int) -> int:
        """The number of the watch on the file open as `fd`; the same number for the same inode."""
        number: int = self._add(self.fd, b"/proc/self/fd/%d" % fd, mask)
        if number < 0:
            raise _last_error()
        return number

    def remove(self, number: int) -> None:
        """A watch that the kernel has already ended is not an error."""
        if self._remove(self.fd, number) < 0 and ctypes.get_errno() != errno.EINVAL:
            raise _last_error()

    def read(self) -> list[Event]:
        """The events in the queue, or as many as are read at once; empty if there are none."""
        try:
            return list(parse_events(os.read(self.fd, READ_BYTES)))
        except BlockingIOError:
            return []

    def close(self) -> None:
        os.close(self.fd)


def parse_events(data: bytes) -> Iterator[Event]:
    position = 0
    while position < len(data):
        watch, mask, _, length = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        name = data[position : position + length]
        yield Event(watch, mask, name.rstrip(b"\0"))
        position += length


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
