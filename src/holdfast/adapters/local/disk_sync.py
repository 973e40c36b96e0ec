"""fsync that reaches the disk.

On macOS, `fsync` hands the data to the disk, which may keep it in its cache and lose it with the
power. F_FULLFSYNC also empties that cache. A file system that does not know it, such as a network
mount, gets a plain `fsync`. A disk that fails is reported, not asked again in a weaker way.
"""

from __future__ import annotations

import errno
import fcntl
import os

FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_UNKNOWN = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS)


def sync_to_disk(fd: int) -> None:
    """Make the content of a file or directory durable."""
    if FULL_SYNC is not None:
        try:
            fcntl.fcntl(fd, FULL_SYNC)
        except OSError as error:
            if error.errno not in _UNKNOWN:
                raise
        else:
            return
    os.fsync(fd)
