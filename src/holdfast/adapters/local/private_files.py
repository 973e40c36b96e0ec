"""Reading the small files of a store, and looking whether its place is the user's own.

What stands under a name of ours may have been put there by somebody else: a pipe that never
answers, a link that leads away, a directory. Such a thing is an error, not something to wait for.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from holdfast.domain.errors import WorkspaceRefused

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITABLE_BY_OTHERS = 0o022
_ROOT = 0


def read_own_file(path: Path, most_bytes: int = -1) -> bytes:
    """The bytes of a regular file, all or the first ones; `OSError` for anything else."""
    fd = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(fd)


def require_own_place(home: Path) -> None:
    """Refuse a directory for stores that somebody else owns, or can exchange for another.

    Root is nobody else. One that is ours and open to others is closed: nothing in it needs them.
    """
    for path in (home, home / "stores", home / "by-path"):
        try:
            status = path.stat()
            owners = {status.st_uid, path.lstat().st_uid}
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise WorkspaceRefused(
                f"the store's directory {path} cannot be looked at: {error.strerror}",
                hint="set HOLDFAST_HOME to a directory of your own",
            ) from None
        foreign = owners - {os.geteuid(), _ROOT}
        if foreign:
            raise WorkspaceRefused(
                f"the store's directory {path} belongs to another user (uid {foreign.pop()})",
                hint="set HOLDFAST_HOME to a directory of your own",
            )
        _close_to_others(path, status)


def _close_to_others(path: Path, status: os.stat_result) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _WRITABLE_BY_OTHERS or mode & stat.S_ISVTX:
        return
    if status.st_uid != os.geteuid():
        raise WorkspaceRefused(
            f"the store's directory {path} can be changed by every user of this machine",
            hint="set HOLDFAST_HOME to a directory of your own",
        )
    path.chmod(mode & ~_WRITABLE_BY_OTHERS)
