"""Everything of a damaged story that can be proven to be as it was written.

    page images → cells → rows whose checksum holds

Guarantee: no row is returned whose checksum does not hold, and of two versions of a row the newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from holdfast.adapters.local.catalog.page_images import (
    PageImages,
    Unreadable,
    Values,
    cells,
    strewn_cells,
)
from holdfast.adapters.local.catalog.rows import is_sealed
from holdfast.adapters.local.story.rows import COLUMNS

Salvaged: TypeAlias = dict[str, dict[Any, Values]]
"""Proven rows by table and key."""

_TABLES: dict[int, list[str]] = {}
for _table, _columns in COLUMNS.items():
    _TABLES.setdefault(_columns.count(",") + 1, []).append(_table)


def nothing() -> Salvaged:
    return {table: {} for table in COLUMNS}


def salvage_from(pages: PageImages) -> Salvaged:
    found = nothing()
    free = pages.free_pages()
    clear = {n for n in pages.images if pages.tells_its_kind(n, pages.newest(n))}
    for number in sorted(clear - free):
        _take_page(pages, number, found)
    # Most of what is left are the long texts of rows that were read just now.
    for number in sorted(pages.images.keys() - clear - free - pages.continued):
        _take_page(pages, number, found)
    return found


def _take_page(pages: PageImages, number: int, found: Salvaged) -> None:
    """Older images speak only for a page whose newest one does not make sense: they still show
    what was removed."""
    newest, *older = pages.images[number]
    if _take(cells(pages, number, newest), found) and pages.tells_its_kind(number, newest):
        return
    if int.from_bytes(newest[:4], "big") > len(pages.images):
        _take(strewn_cells(pages, newest), found)  # else it is the rest of a long text
    for image in older:
        sound = _take(cells(pages, number, image), found)
        if sound and pages.tells_its_kind(number, image):
            return


def _take(rows: Iterable[Values | Unreadable], found: Salvaged) -> bool:
    sound = True
    for row in rows:
        if isinstance(row, Unreadable):
            sound = False
            continue
        tables = _TABLES.get(len(row), ())
        table = next((table for table in tables if is_sealed(table, row)), None)
        if table is not None:
            found[table].setdefault(_key(table, row), row)
        elif tables:
            sound = False
    return sound


def _key(table: str, row: Values) -> Any:
    return row[:2] if table == "facts" else row[0]
