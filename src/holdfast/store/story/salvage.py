"""Everything of a damaged story that can be proven to be as it was written.

    plain file:      page images → cells → rows whose checksum holds
    encrypted file:  through SQLite, row by row, passing over what it cannot give

Guarantee: no row is returned whose checksum does not hold, and of two versions of a row the newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import apsw

from holdfast.store.catalog.page_images import (
    PageImages,
    Unreadable,
    Values,
    cells,
    page_images,
    strewn_cells,
    tells_its_kind,
)
from holdfast.store.catalog.rows import is_sealed
from holdfast.store.story.rows import COLUMNS

Salvaged: TypeAlias = dict[str, dict[Any, Values]]
"""Proven rows by table and key."""

_TABLES: dict[int, list[str]] = {}
for _table, _columns in COLUMNS.items():
    _TABLES.setdefault(_columns.count(",") + 1, []).append(_table)


def nothing() -> Salvaged:
    return {table: {} for table in COLUMNS}


def salvage_pages(database: bytes, log: bytes) -> Salvaged:
    pages = page_images(database, log)
    found = nothing()
    free = pages.free_pages()
    clear = {n for n in pages.images if tells_its_kind(n, pages.newest(n))}
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
    if _take(cells(pages, number, newest), found) and tells_its_kind(number, newest):
        return
    if int.from_bytes(newest[:4], "big") > len(pages.images):
        _take(strewn_cells(pages, newest), found)  # else it is the rest of a long text
    for image in older:
        sound = _take(cells(pages, number, image), found)
        if sound and tells_its_kind(number, image):
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


def salvage_rows(db: apsw.Connection) -> Salvaged:
    found = nothing()
    for table, columns in COLUMNS.items():
        if table == "facts":
            _take_query(db, f"SELECT {columns} FROM facts", (), found)
            continue
        key = columns.partition(",")[0]
        for number in range(1, _last(db, table) + 1):
            _take_query(db, f"SELECT {columns} FROM {table} WHERE {key}=?", (number,), found)
    return found


def _last(db: apsw.Connection, table: str) -> int:
    try:
        rows: list[Any] = db.execute(
            "SELECT max(seq) FROM sqlite_sequence WHERE name=?", (table,)
        ).fetchall()
        return int(rows[0][0] or 0)
    except (apsw.Error, ValueError, TypeError, UnicodeDecodeError):
        return 0


def _take_query(db: apsw.Connection, query: str, values: tuple[Any, ...], found: Salvaged) -> None:
    try:
        for row in db.execute(query, values):
            _take([row], found)
    except (apsw.Error, UnicodeDecodeError):
        return


def _key(table: str, row: Values) -> Any:
    return row[:2] if table == "facts" else row[0]
