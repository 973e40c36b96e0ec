"""Moving a damaged file out of the way without deleting it.

    store/set-aside/<name of the occasion>/<file>

What is in the way of the store may still be somebody's only copy: a file that was swapped with
another, say. It is renamed with its log, never unlinked, and counts towards the budget until a
person removes it.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.adapters.local.atomic_write import DIRECTORY_MODE

SET_ASIDE = "set-aside"
_COMPANIONS = ("", "-wal", "-shm")


def set_aside(store: Path, occasion: str, *paths: Path) -> Path:
    """Rename each path that exists, with its SQLite companions; the directory they are in."""
    directory = make_place(store, occasion)
    for path in paths:
        for suffix in _COMPANIONS:
            source = path.with_name(path.name + suffix)
            if source.exists() or source.is_symlink():
                source.rename(directory / source.name)
    for changed in (directory, *{path.parent for path in paths}):
        sync(changed)
    return directory


def make_place(store: Path, occasion: str) -> Path:
    """A fresh directory: the occasion, numbered when it was taken."""
    above = store / SET_ASIDE
    above.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    number = 1
    while True:
        directory = above / (occasion if number == 1 else f"{occasion}-{number}")
        try:
            directory.mkdir(mode=DIRECTORY_MODE)
            break
        except FileExistsError:
            number += 1
    sync(above)
    sync(store)
    return directory


def sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def identity_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one that was put in its place."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
