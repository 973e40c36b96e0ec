"""Who holds a lock that SQLite waits for in vain, so that the message can name the process.

Read from the kernel's list of locks and never by opening the file: closing it again would drop the
locks that this process itself has on it.
"""

from __future__ import annotations

import os
from pathlib import Path

_LOCKS = Path("/proc/locks")
_SUFFIXES = ("", "-shm", "-wal")


def holder_of(database: Path) -> int | None:
    """Another process that has a lock on a database or its companions; None where that is not
    known."""
    inodes = set()
    for suffix in _SUFFIXES:
        try:
            inodes.add(str(database.with_name(database.name + suffix).stat().st_ino))
        except OSError:
            continue
    try:
        lines = _LOCKS.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    readers: list[int] = []
    for line in lines:
        # 1: POSIX  ADVISORY  WRITE 4711 fe:01:123456 128 128
        fields = line.split()
        if len(fields) < 8 or fields[1] != "POSIX" or not fields[4].isdecimal():
            continue
        if fields[5].rpartition(":")[2] in inodes and int(fields[4]) not in (0, os.getpid()):
            if fields[3] == "WRITE":  # those who read are most likely waiting, too
                return int(fields[4])
            readers.append(int(fields[4]))
    return readers[0] if readers else None
