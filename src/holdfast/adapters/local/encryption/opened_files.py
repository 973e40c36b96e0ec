"""What the files of an encrypted store say to whoever has its key, for those who look for traces.

    a database → its pages, a log → its frames, also those that SQLite does not use any more;
    a pack in use → its records; any other file → the note that is sealed in it

Guarantee: whatever can be opened is, also in copies that a repair has set aside under the same
name. What is not authentic says nothing: with this key nobody can read anything in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.encryption.cipher import Cipher, NotAuthentic, StoreKeys
from holdfast.adapters.local.encryption.sealed_database import (
    FRAME_BYTES,
    FRAME_LABEL,
    LOG_HEADER_BYTES,
    PAGE_BYTES,
    PAGE_LABEL,
    context_of,
)

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.local import LocalObjectStore

_LOG = "-wal"
_DATABASES = {
    "catalog.db": "catalog",
    "index.db": "index",
    "story.db": "story",
    "story.rebuilt.db": "story",
    "search.db": "search index",
    "events.db": "events",
    "stat-cache.db": "stat cache",
}
_NOTES = "journal"
_LARGEST_NOTE_BYTES = 1 << 30


def opened_parts(path: Path, keys: StoreKeys, objects: LocalObjectStore) -> Iterator[bytes]:
    """Part by part; nothing of a file that is gone by now."""
    role = _DATABASES.get(path.name.removesuffix(_LOG))
    try:
        if path.suffix == ".pack":
            yield from _records(path, objects)
        elif role is None:
            yield from _note(path, keys.cipher(_NOTES))
        elif path.name.endswith(_LOG):
            yield from _units(path, keys.cipher(role), FRAME_LABEL, LOG_HEADER_BYTES, FRAME_BYTES)
        else:
            yield from _units(path, keys.cipher(role), PAGE_LABEL, 0, PAGE_BYTES)
    except FileNotFoundError:
        return


def _records(path: Path, objects: LocalObjectStore) -> Iterator[bytes]:
    packs = objects.packs
    with objects.lock:
        for number in packs.numbers():
            if packs.path(number) == os.fsencode(path):
                for _, record, _ in packs.scan(number, 0):
                    if record is not None:
                        yield b"".join((record.digest, record.base or b"", record.stored))


def _units(
    path: Path, cipher: Cipher, label: bytes, start: int, unit_bytes: int
) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        number = 0
        while unit := file.read(unit_bytes):
            yield from _opened(cipher, unit, context_of(label, number))
            number += 1


def _note(path: Path, cipher: Cipher) -> Iterator[bytes]:
    if path.stat().st_size <= _LARGEST_NOTE_BYTES:
        yield from _opened(cipher, path.read_bytes(), path.name.encode())


def _opened(cipher: Cipher, sealed: bytes, context: bytes) -> Iterator[bytes]:
    try:
        yield cipher.open(sealed, context)
    except NotAuthentic:
        return
