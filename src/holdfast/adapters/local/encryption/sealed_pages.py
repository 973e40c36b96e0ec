"""The pages of a damaged sealed database, as far as they are authentic, for whoever salvages rows.

    page or frame → opened with its number as context → its bytes; not authentic → nothing

SQLite gives up at the first page that cannot be opened; here each stands for itself, so that damage
costs the rows of the pages it hit. Guarantee: no byte is returned that was not sealed with this key
for this place. Not noticed: an older page put back in its place; rows are proven by their checksums
all the same.
"""

from __future__ import annotations

from holdfast.adapters.local.catalog.page_images import PageImages, page_images
from holdfast.adapters.local.encryption.cipher import OVERHEAD_BYTES, Cipher, NotAuthentic
from holdfast.adapters.local.encryption.sealed_database import (
    FRAME_BYTES,
    FRAME_LABEL,
    LOG_HEADER_BYTES,
    PAGE_BYTES,
    PAGE_LABEL,
    context_of,
)

_RESERVED = bytes(OVERHEAD_BYTES)


def sealed_page_images(database: bytes, log: bytes, cipher: Cipher) -> PageImages:
    """A page that is lost is one of zeros. A frame that is lost does not say which page it was for,
    so that any page may have had a newer image: `newest_may_be_lost`."""
    pages = b"".join(
        _opened(cipher, database[start : start + PAGE_BYTES], PAGE_LABEL, number)
        or bytes(PAGE_BYTES)
        for number, start in enumerate(range(0, len(database), PAGE_BYTES))
    )
    frames = [
        _opened(cipher, log[start : start + FRAME_BYTES], FRAME_LABEL, number)
        for number, start in enumerate(range(LOG_HEADER_BYTES, len(log), FRAME_BYTES))
    ]
    whole = log[:LOG_HEADER_BYTES].ljust(LOG_HEADER_BYTES, b"\0") + b"".join(filter(None, frames))
    found = page_images(pages, whole, usable_bytes=PAGE_BYTES - OVERHEAD_BYTES)
    found.newest_may_be_lost = None in frames
    return found


def _opened(cipher: Cipher, unit: bytes, label: bytes, number: int) -> bytes | None:
    try:
        return cipher.open(unit, context_of(label, number)) + _RESERVED
    except NotAuthentic:
        return None
