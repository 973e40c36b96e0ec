"""Databases of the store that only repeat what others hold, and may be thrown away at any time.

Not at any price: a file that was put in such a place by mistake may be somebody's only copy. It is
set aside, where what is certainly ours is deleted.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from holdfast.adapters.local.own_files import read_own_file
from holdfast.adapters.local.setting_aside import set_aside

_BEGINNING_BYTES = 32768
_TABLES_AT = slice(103, 105)
"""Where an SQLite file counts what stands on its first page: the tables and indexes it has."""

_COMPANIONS = ("", "-wal", "-shm")


def discard(path: Path, occasion: str, *, our_mark: bytes) -> None:
    """Make room for a new file. `our_mark` is what the schema of our own has in it."""
    if not _is_ours(path, our_mark):
        set_aside(path.parent, occasion, path)
    unlink(path)


def unlink(path: Path) -> None:
    """With its log; unlike a file that cannot be used, one that was in use is certainly ours."""
    for suffix in _COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


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
