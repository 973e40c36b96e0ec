"""Moving a damaged file out of the way without deleting it.

    store/set-aside/<name of the occasion>/<file>

A file that the store cannot use may still be the user's only copy: one that was swapped with
another, say. It is renamed with its log, never unlinked, and counts towards the budget until the
user removes it. Only a database that repeats what others hold, and is certainly ours, is deleted.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from holdfast.adapters.local.small_files import read_own_file
from holdfast.ports.filesystem import DIRECTORY_MODE

SET_ASIDE = "set-aside"
_SQLITE_SUFFIXES = ("", "-wal", "-shm")
_BEGINNING_BYTES = 32768
_TABLES_AT = slice(103, 105)
"""Where an SQLite file counts what stands on its first page: the tables and indexes it has."""


def quarantine(store: Path, occasion: str, *paths: Path) -> Path:
    """Rename each path that exists, with its SQLite companions; the directory they are in."""
    directory = quarantine_directory(store, occasion)
    for path in paths:
        for suffix in _SQLITE_SUFFIXES:
            source = path.with_name(path.name + suffix)
            if source.exists() or source.is_symlink():
                source.rename(directory / source.name)
    for changed in (directory, *{path.parent for path in paths}):
        sync(changed)
    return directory


def quarantine_directory(store: Path, occasion: str) -> Path:
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


def discard_derived(path: Path, occasion: str, *, our_mark: bytes) -> None:
    """Make room for a new derived database. `our_mark` is part of the schema of our own."""
    if not _is_ours(path, our_mark):
        quarantine(path.parent, occasion, path)
    unlink_database(path)


def unlink_database(path: Path) -> None:
    """With its log; unlike a file that cannot be used, one that was in use is certainly ours."""
    for suffix in _SQLITE_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


def copy_database(source: Path, target: Path) -> None:
    """With its log, as far as they are there."""
    import shutil  # late: it brings half a dozen modules, and saves do not need it

    for suffix in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"{source}{suffix}", f"{target}{suffix}")


def _is_ours(path: Path, our_mark: bytes) -> bool:
    beginning = {}
    try:
        for suffix in ("", "-wal"):  # of a new file, all may still be in the log
            with contextlib.suppress(FileNotFoundError):
                found = path.with_name(path.name + suffix)
                beginning[suffix] = read_own_file(found, _BEGINNING_BYTES)
    except OSError:
        return False  # a pipe, a link: whatever it is, we did not make it
    database = beginning.get("", b"")
    holds_nothing = not database.strip(b"\0") or not any(database[_TABLES_AT])
    return holds_nothing or any(our_mark in found for found in beginning.values())
