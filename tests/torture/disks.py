"""The file systems that a campaign can run on: the disk's, and one in memory."""

from __future__ import annotations

import os
from pathlib import Path

_MEMORY = Path("/dev/shm")
_MOUNTS = Path("/proc/self/mountinfo")
_ROOM_BYTES = 1 << 30


def kind_of(path: Path) -> str:
    """The name of the file system that `path` lies on, as the kernel says it."""
    found = {"/": "unknown"}
    for line in _MOUNTS.read_text("utf-8", "surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        found[before.split()[4]] = after.split()[0]
    real = os.path.realpath(path)
    while real not in found:
        real = os.path.dirname(real)
    return found[real]


def memory_disk() -> Path | None:
    """A directory on a tmpfs, if this machine has one with room, to write and to run programs in.
    In a container it often has next to none."""
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK | os.X_OK):
        return None
    told = os.statvfs(_MEMORY)
    has_room = told.f_bavail * told.f_frsize >= _ROOM_BYTES
    runs_programs = not told.f_flag & os.ST_NOEXEC
    return _MEMORY if has_room and runs_programs and kind_of(_MEMORY) == "tmpfs" else None
