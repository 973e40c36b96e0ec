"""The mounted file systems at and below a workspace, and whether they changed.

A mount makes no event in the directory that it covers, and on a network file system other
machines change files without one. Both are seen in the kernel's table, which tells by itself when
it changed, so asking costs next to nothing.
"""

from __future__ import annotations

import os
import re
import select
from pathlib import Path
from typing import NamedTuple

TABLE = Path("/proc/self/mountinfo")
LOCAL_TYPES = frozenset(
    b"bcachefs btrfs ecryptfs erofs exfat ext2 ext3 ext4 f2fs hfsplus iso9660 jfs msdos nilfs2 "
    b"ntfs3 overlay ramfs reiserfs rootfs squashfs tmpfs udf vfat xfs zfs".split()
)
"""Changed through this kernel and no other. A type that is not listed is not trusted."""

_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """A line of the table; `number` is never the same for two mounts at one time."""

    number: bytes
    point: bytes
    kind: bytes


def parse_mounts(table: bytes) -> tuple[Mount, ...]:
    mounts = []
    # The kernel escapes a line break in a path, and no carriage return.
    for line in filter(None, table.split(b"\n")):
        fields, _, rest = line.partition(b" - ")
        columns = fields.split(b" ")
        if len(columns) < 6 or not rest:
            raise ValueError(f"not a line of a mount table: {line!r}")
        point = _ESCAPED.sub(lambda m: bytes([int(m[1], 8) & 0xFF]), columns[4])
        mounts.append(Mount(columns[0], point, rest.split(b" ")[0]))
    return tuple(mounts)


def mounts_around(mounts: tuple[Mount, ...], directory: bytes) -> tuple[Mount, ...]:
    """The mount that the directory is on, and those below it."""
    under: Mount | None = None
    below = []
    for mount in mounts:
        if _is_within(directory, mount.point):
            # Of two at one point the later covers the earlier.
            if under is None or len(mount.point) >= len(under.point):
                under = mount
        elif _is_within(mount.point, directory):
            below.append(mount)
    return ((under,) if under is not None else ()) + tuple(below)


def _is_within(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")


class MountTable:
    """The table of this process, read again when the kernel says that it changed."""

    def __init__(self) -> None:
        self._fd = os.open(TABLE, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        # A change is told once for each opening: who waits for one must not take it from `around`.
        self.alarm = os.open(TABLE, os.O_RDONLY | os.O_CLOEXEC)
        self._mounts = self._read()

    def around(self, directory: bytes) -> tuple[Mount, ...]:
        if self._poll.poll(0):
            self._mounts = self._read()
        return mounts_around(self._mounts, directory)

    def _read(self) -> tuple[Mount, ...]:
        os.lseek(self._fd, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._fd, 1 << 16):
            parts.append(part)
        return parse_mounts(b"".join(parts))

    def close(self) -> None:
        os.close(self._fd)
        os.close(self.alarm)
