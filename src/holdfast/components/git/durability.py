"""Putting on disk what git itself leaves to the system: objects of the last minutes.

Git does not sync loose objects by default. What was written longer ago than a system waits before
it writes by itself is on disk; the rest is synced, so that a checkpoint never names a commit that a
power cut takes away.
"""

from __future__ import annotations

import os

from holdfast.components.git.finding import Repository

_RECENT_NS = 120 * 1_000_000_000
_ONE_BY_ONE = 200


def sync_recent_objects(repository: Repository, now_ns: int) -> None:
    since_ns = now_ns - _RECENT_NS
    recent: list[bytes] = []
    for number in range(256):
        directory = repository.shared(b"objects", b"%02x" % number)
        try:
            if os.stat(directory).st_mtime_ns < since_ns:
                continue
        except OSError:
            continue
        recent.append(directory)
        with os.scandir(directory) as entries:
            recent += [e.path for e in entries if e.stat().st_mtime_ns >= since_ns]
        if len(recent) > _ONE_BY_ONE:
            os.sync()  # waits for the whole system, which is quicker than so many files
            return
    for path in recent:
        _sync(path)


def _sync(path: bytes) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # packed meanwhile, and packs are synced
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
