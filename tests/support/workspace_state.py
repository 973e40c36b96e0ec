"""What a workspace holds, read with nothing of Holdfast: paths, kinds, modes and bytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def state_of(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every path but git's and Holdfast's own data."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for directory, names, leaves in os.walk(root):
        names[:] = sorted(name for name in names if name not in (".git", ".holdfast"))
        for name in (*names, *leaves):
            path = Path(directory, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            key = str(path.relative_to(root))
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", 0, os.fsencode(os.readlink(path)))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("directory", mode, b"")
            else:
                found[key] = ("file", mode, path.read_bytes())
    return found
