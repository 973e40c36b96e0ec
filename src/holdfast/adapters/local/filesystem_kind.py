"""What kind of file system a place lies on, by the table of mounts; unknown where there is none."""

from __future__ import annotations

import os
import re
from pathlib import Path

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs")
_MOUNTS = Path("/proc/self/mounts")
_TABLE = Path("/etc/fstab")
_PLACES_OF_DISKS = ("/media", "/mnt", "/run/media", "/Volumes", "/net")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def existing(path: Path) -> Path:
    """The place itself, or the nearest one above it that is there."""
    while not path.exists():
        path = path.parent
    return path


def may_be_unmounted(path: Path) -> bool:
    """Whether a missing path may be on a disk that is not mounted: it is below a usual place for
    disks, or below one that the system's table names and where nothing is mounted now."""
    above = {str(one) for one in path.parents} | {str(path)}
    if not above.isdisjoint(_PLACES_OF_DISKS):
        return True
    mounted = {point for point, _ in _mounts()}
    return any(point in above and point not in mounted for point in _listed_mount_points())


def _listed_mount_points() -> list[str]:
    try:
        lines = _TABLE.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines if not line.lstrip().startswith("#")]
    return [_unescaped(one[1]).rstrip("/") for one in fields if len(one) > 2 and one[1] != "/"]


def is_on_a_network(path: Path) -> bool:
    """Whether other machines see what lies, or will lie, there."""
    return file_system_of(existing(path)) in NETWORK


def mount_points_below(path: bytes) -> list[bytes]:
    """See `holdfast.ports.filesystem.Filesystem`."""
    real = os.fsdecode(os.path.realpath(path)).rstrip("/") + "/"
    return [os.fsencode(point) for point, _ in _mounts() if point.startswith(real)]


def _mounts() -> list[tuple[str, str]]:
    """Mount points with the types of their file systems."""
    try:
        table = _MOUNTS.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return []
    found = []
    for line in filter(None, table.split("\n")):  # of all line breaks, only this one is escaped
        _, point, kind, *_ = line.split(" ")
        found.append((_unescaped(point), kind))
    return found


def _unescaped(point: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), point)


def file_system_of(path: Path) -> str | None:
    """The type of the file system with the longest mount point above the path."""
    real = os.path.realpath(path)
    best, kind = "", None
    for point, found in _mounts():
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind
