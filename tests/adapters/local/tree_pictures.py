"""Everything one can see of a directory tree, for comparing it before and after."""

from __future__ import annotations

import os
from pathlib import Path


def picture(root: Path) -> dict[str, tuple[object, ...]]:
    """Path to mode, owner, times and content of everything below `root`, and `root` itself."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status = path.lstat()
        content: object = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        seen[str(path.relative_to(root))] = (
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_ino,
            status.st_mtime_ns,
            content,
        )
    return seen
