"""A hash of a directory tree that shares nothing with the engine.

It walks with `os.walk` and hashes with SHA-256: names, kinds, modes, link targets and contents.
That is slow and plain on purpose: it is the second opinion.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

_NOT_PROJECT = b".holdfast"


def tree_hash(root: Path) -> str:
    """The same for two trees exactly when they hold the same, the marker of Holdfast apart."""
    top = os.fsencode(root)
    whole = hashlib.sha256()
    for directory, names, files in os.walk(top):
        if directory == top and _NOT_PROJECT in names:
            names.remove(_NOT_PROJECT)
        names.sort()
        for name in sorted([*names, *files]):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            described = (os.path.relpath(path, top), oct(status.st_mode), _content(path, status))
            whole.update(repr(described).encode())
    return whole.hexdigest()


def _content(path: bytes, status: os.stat_result) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(status.st_mode):
        return b""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()
