"""The least a durable save without a watcher can cost: look at every file, fsync once.

Also what makes the measurements warm: reading a tree before anybody is timed on it.
"""

import os
from pathlib import Path


def walk(root: Path) -> int:
    """Visit every directory and lstat every entry; returns how many there were."""
    seen = 0
    pending = [os.fspath(root)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return seen


def read(root: Path) -> None:
    """Read every file, so that its pages are in memory."""
    for directory, _, names in os.walk(root):
        for name in names:
            Path(directory, name).read_bytes()


def fsync_once(directory: Path) -> None:
    """Append one block to a file and make it durable."""
    with open(directory / "fsync-floor", "ab", buffering=0) as file:
        file.write(bytes(4096))
        os.fsync(file.fileno())
