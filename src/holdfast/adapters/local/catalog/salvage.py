"""The provably undamaged rows of a damaged catalog.

    page images → cells → rows with a valid checksum → one row per key → missing ones are listed

A page with a sound newest image needs no others; otherwise, older images and every offset of it are
tried. Guarantee: no row is returned whose checksum is wrong, and of two versions of a row the one
in the newer image is returned. Settings are recovered all or none, because they share a checksum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.adapters.local.catalog.page_images import (
    PageImages,
    Unreadable,
    Values,
    cells,
    scattered_cells,
)
from holdfast.adapters.local.catalog.rows import (
    CHECKSUM_BYTES,
    SEALED_COLUMNS,
    is_sealed,
    settings_checksum,
)

_WIDTHS = {columns.count(",") + 1: table for table, columns in SEALED_COLUMNS.items()}
_CONFIDENCE = SEALED_COLUMNS["checkpoints"].split(", ").index("confidence")
_KEPT_ASIDE_CHARACTERS = 200_000
FACTS = ("current_session",)


@dataclass(slots=True)
class Salvaged:
    """Verified rows by table and key, and descriptions of what could not be read.

    `doubtful` rows are valid but may not be their newest version.
    """

    rows: dict[str, dict[Any, Values]] = field(
        default_factory=lambda: {table: {} for table in SEALED_COLUMNS}
    )
    settings: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    changes: int = 0
    settings_proven: bool = False
    unreadable: list[str] = field(default_factory=list)
    doubtful: set[tuple[str, Any]] = field(default_factory=set)


def salvage_from(pages: PageImages) -> Salvaged:
    found = Salvaged()
    loose = _UnprovenRows()
    for number in pages.row_pages():
        _take_page(pages, number, found, loose)
    loose.settle(found)
    if pages.newest_may_be_lost:
        found.doubtful |= {("sessions", session_id) for session_id in found.rows["sessions"]}
    return found


def _take_page(pages: PageImages, number: int, found: Salvaged, loose: _UnprovenRows) -> None:
    newest, *older = pages.images[number]
    sound = _take(cells(pages, number, newest), found, loose)
    if sound and pages.has_known_kind(number, newest):
        return
    _take(scattered_cells(pages, newest), found, None, newest=False)
    for image in older:
        _take(cells(pages, number, image), found, loose, newest=False)
        if pages.has_known_kind(number, image):
            return


def _take(
    values: Iterable[Values | Unreadable],
    found: Salvaged,
    loose: _UnprovenRows | None,
    *,
    newest: bool = True,
) -> bool:
    """True if every cell was read and, where required, matched its checksum."""
    sound = True
    for row in values:
        if isinstance(row, Unreadable):
            sound = False
            if newest:
                found.unreadable.append(str(row))
            continue
        table = _WIDTHS.get(len(row))
        if table is None:
            if loose is not None:
                loose.take(row)
            continue
        row = _as_written(table, row)
        if is_sealed(table, row):
            if row[0] not in found.rows[table] and not newest:
                found.doubtful.add((table, row[0]))
            found.rows[table].setdefault(row[0], row)
        elif loose is not None and isinstance(row[-1], bytes) and len(row[-1]) == CHECKSUM_BYTES:
            sound = False
            if newest:
                found.unreadable.append(f"{table}: {row!a}"[:_KEPT_ASIDE_CHARACTERS])
    return sound


def _as_written(table: str, row: Values) -> Values:
    """SQLite stores a whole number in a REAL column as an integer."""
    if table != "checkpoints" or not isinstance(row[_CONFIDENCE], int):
        return row
    return (*row[:_CONFIDENCE], float(row[_CONFIDENCE]), *row[_CONFIDENCE + 1 :])


class _UnprovenRows:
    """Settings, facts and their seal, which prove each other or nothing."""

    def __init__(self) -> None:
        self._pairs: dict[str, list[str]] = {}
        self._seals: list[Values] = []

    def take(self, row: Values) -> None:
        if len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], str):
            seen = self._pairs.setdefault(row[0], [])
            if row[1] not in seen:
                seen.append(row[1])
        elif len(row) == 3 and row[0] == "settings" and isinstance(row[1], int):
            self._seals.append(row)

    def settle(self, found: Salvaged) -> None:
        for pairs in self._versions():
            settings = {k: v for k, v in pairs.items() if k not in FACTS}
            facts = {k: v for k, v in pairs.items() if k in FACTS}
            for _, changes, checksum in self._seals:
                if checksum == settings_checksum(changes, settings, facts):
                    found.settings, found.facts, found.changes = settings, facts, changes
                    found.settings_proven = True
                    return
        found.changes = max((seal[1] for seal in self._seals if seal[1] < 1 << 40), default=0)
        for key, values in self._pairs.items():
            found.unreadable.append(f"settings or facts: {key!a} = {values!a}")

    def _versions(self) -> Iterator[dict[str, str]]:
        """The newest value of each key; then, one key at a time, an older value or none."""
        newest = {key: values[0] for key, values in self._pairs.items()}
        yield newest
        for key, values in self._pairs.items():
            for value in values[1:]:
                yield newest | {key: value}
            yield {k: v for k, v in newest.items() if k != key}
