"""The files of an encrypted store decrypted: for a purge that searches for traces, and for a
repair.

    a database → its pages, a log → its frames, even those that SQLite no longer uses;
    a pack in use → its records; the tool log → its lines; any other file → the note sealed in it

Guarantee: every part that the key opens is returned, including parts of quarantined copies under
the same name. A part that is not authentic is left out, because the key cannot read it. SQLite
stops at the first page that cannot be opened; here, damage costs only the pages it hit.
Not detected: an older page put back in its place; row checksums detect that anyway.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.catalog.page_images import PageImages, page_images
from holdfast.adapters.local.encryption.cipher import (
    OVERHEAD_BYTES,
    Cipher,
    NotAuthentic,
    StoreKeys,
)
from holdfast.adapters.local.encryption.sealed_database import (
    FRAME_BYTES,
    FRAME_LABEL,
    LOG_HEADER_BYTES,
    PAGE_BYTES,
    PAGE_LABEL,
    context_of,
)
from holdfast.adapters.local.layout import TOOL_LOG

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.object_store import LocalObjectStore

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
    """The parts one by one; nothing for a file that no longer exists."""
    role = _DATABASES.get(path.name.removesuffix(_LOG))
    try:
        if path.suffix == ".pack":
            yield from _records(path, objects)
        elif path.name.removesuffix(".1") == TOOL_LOG:
            yield from _lines(path, keys.cipher(_NOTES))
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


def _lines(path: Path, cipher: Cipher) -> Iterator[bytes]:
    for line in path.read_bytes().split(b"\n"):
        try:
            sealed = binascii.a2b_base64(line)
        except binascii.Error:
            continue
        yield from _opened(cipher, sealed, TOOL_LOG.encode())


def _opened(cipher: Cipher, sealed: bytes, context: bytes) -> Iterator[bytes]:
    try:
        yield cipher.open(sealed, context)
    except NotAuthentic:
        return


_RESERVED = bytes(OVERHEAD_BYTES)


def sealed_page_images(database: bytes, log: bytes, cipher: Cipher) -> PageImages:
    """A lost page reads as zeros. A lost frame does not say which page it was for, so any page may
    have had a newer image: `newest_may_be_lost`."""
    pages = b"".join(
        _opened_page(cipher, database[start : start + PAGE_BYTES], PAGE_LABEL, number)
        or bytes(PAGE_BYTES)
        for number, start in enumerate(range(0, len(database), PAGE_BYTES))
    )
    frames = [
        _opened_page(cipher, log[start : start + FRAME_BYTES], FRAME_LABEL, number)
        for number, start in enumerate(range(LOG_HEADER_BYTES, len(log), FRAME_BYTES))
    ]
    whole = log[:LOG_HEADER_BYTES].ljust(LOG_HEADER_BYTES, b"\0") + b"".join(filter(None, frames))
    found = page_images(pages, whole, usable_bytes=PAGE_BYTES - OVERHEAD_BYTES)
    found.newest_may_be_lost = None in frames
    return found


def _opened_page(cipher: Cipher, unit: bytes, label: bytes, number: int) -> bytes | None:
    try:
        return cipher.open(unit, context_of(label, number)) + _RESERVED
    except NotAuthentic:
        return None
