"""Looking at many files of one directory without making an object of what is said of each.

    one `fstatat` a name, answers side by side in one buffer → the buffer as bytes
    equal bytes are equal answers; the few numbers that matter are taken out where they are not

Making an `os.stat_result` takes several times as long as the system call it is made for, and of an
unchanged file nothing is wanted but that it is. Guarantee: where the system lays its answer out in
a way that is not known here, or a name cannot be looked at, there is no answer, and the caller asks
for each name by itself. Not guaranteed: equal bytes for equal files, since reading a file may
change the time of its last access.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Sequence
from typing import Any

from holdfast.ports.filesystem import StatNumbers

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
