"""The mounted file systems: which one a path is on, those below it, and whether they changed.

A mount causes no event in the directory that it covers, and on a network file system other machines
change files without one. Both are visible in the kernel's table, which signals changes, so checking
costs next to nothing. Without such a table, nothing is known.
"""

from __future__ import annotations

import os
import re
import select
from pathlib import Path

from holdfast.values.classes import NamedTuple

TABLE = Path("/proc/self/mountinfo")
LOCAL_TYPES = frozenset(
    b"bcachefs btrfs ecryptfs erofs exfat ext2 ext3 ext4 f2fs hfsplus iso9660 jfs msdos nilfs2 "
    b"ntfs3 overlay ramfs reiserfs rootfs squashfs tmpfs udf vfat xfs zfs".split()
)
"""Types that change only through this kernel. A type that is not listed is not trusted."""

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs")
_CONFIGURED = Path("/etc/fstab")
_PLACES_OF_DISKS = ("/media", "/mnt", "/run/media", "/Volumes", "/net")
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """One line of the table; `number` is unique among current mounts."""

    number: bytes
    point: bytes
    kind: bytes


def parse_mounts(table: bytes) -> tuple[Mount, ...]:
    mounts = []
    # The kernel escapes line breaks in a path, but not carriage returns.
    for line in filter(None, table.split(b"\n")):
        fields, _, rest = line.partition(b" - ")
        columns = fields.split(b" ")
        if len(columns) < 6 or not rest:
            raise ValueError(f"not a line of a mount table: {line!r}")
        mounts.append(Mount(columns[0], _unescaped(columns[4]), rest.split(b" ")[0]))
    return tuple(mounts)


def _unescaped(point: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), point)


def mounts_around(mounts: tuple[Mount, ...], directory: bytes) -> tuple[Mount, ...]:
    """The mount that the directory is on, and those below it."""
    under = _mount_of(mounts, directory)
    below = [m for m in mounts if m.point != directory and _is_within(m.point, directory)]
    return ((under,) if under is not None else ()) + tuple(below)


def _mount_of(mounts: tuple[Mount, ...], path: bytes) -> Mount | None:
    """Of two mounts at one point, the later covers the earlier."""
    above = [mount for mount in mounts if _is_within(path, mount.point)]
    return max(reversed(above), key=lambda mount: len(mount.point), default=None)


def _is_within(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")


class MountTable:
    """This process's table, read again when the kernel signals a change."""

    def __init__(self) -> None:
        self._fd = os.open(TABLE, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        # A change is reported once per open file, so a waiter must not consume it from `around`.
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


def _mounted() -> tuple[Mount, ...]:
    try:
        return parse_mounts(TABLE.read_bytes())
    except (OSError, ValueError):  # some sandboxes provide their own table
        return ()


def file_system_of(path: Path) -> str | None:
    """The type of the file system that the path is on."""
    mount = _mount_of(_mounted(), os.fsencode(os.path.realpath(path)))
    return None if mount is None else os.fsdecode(mount.kind)


def mount_points_below(path: bytes) -> list[bytes]:
    """See `holdfast.ports.filesystem.Filesystem`."""
    real = os.path.realpath(path).rstrip(b"/") + b"/"
    return [mount.point for mount in _mounted() if mount.point.startswith(real)]


def existing(path: Path) -> Path:
    """The path itself, or the nearest existing directory above it."""
    while not path.exists():
        path = path.parent
    return path


def is_on_a_network(path: Path) -> bool:
    """Whether other machines can see files at this path, existing or not."""
    return file_system_of(existing(path)) in NETWORK


def may_be_unmounted(path: Path) -> bool:
    """Whether a missing path may be on a disk that is not mounted: it is below a usual mount
    directory, or below a configured mount point with nothing mounted."""
    above = {str(one) for one in (path, *path.parents)}
    if not above.isdisjoint(_PLACES_OF_DISKS):
        return True
    mounted = {mount.point for mount in _mounted()}
    return any(os.fsdecode(point) in above for point in _configured_points() - mounted)


def _configured_points() -> set[bytes]:
    try:
        lines = _CONFIGURED.read_bytes().splitlines()
    except OSError:
        return set()
    fields = [line.split() for line in lines if not line.lstrip().startswith(b"#")]
    return {_unescaped(one[1]).rstrip(b"/") for one in fields if len(one) > 2 and one[1] != b"/"}
