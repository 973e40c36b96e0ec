"""The three system calls of inotify, and its events.

Names are bytes from end to end. A directory is named by an open handle, so that no path is used
across a check (I6): the link `/proc/self/fd/N` leads to what was opened and to nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

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
    """One entry of the queue; `watch` is -1 for an overflow, `name` empty for the directory."""

    watch: int
    mask: int
    name: bytes


class Inotify:
    """One instance: one queue, in the order in which things happened."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._add = library.inotify_add_watch
        self._remove = library.inotify_rm_watch
        self.fd: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise _error()

    def add(self, fd: int, mask: int) -> int:
        """The number of the watch on what `fd` has open; the same again for the same inode."""
        number: int = self._add(self.fd, b"/proc/self/fd/%d" % fd, mask)
        if number < 0:
            raise _error()
        return number

    def remove(self, number: int) -> None:
        """A watch that has ended by itself is no error."""
        if self._remove(self.fd, number) < 0 and ctypes.get_errno() != errno.EINVAL:
            raise _error()

    def read(self) -> list[Event]:
        """What is in the queue now, or as much of it as is read at once; empty for nothing."""
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


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
