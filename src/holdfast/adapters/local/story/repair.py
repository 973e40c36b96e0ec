"""Repair of a damaged story: sound rows go into a new file, the old one is kept.

    look:  check a copy → what can be verified: page images → cells → rows with a valid checksum
    mend:  a complete new file beside the old one → the old one aside → the new one in its place

Guarantee: no row with a wrong checksum is used, and of two versions of a row the newer one is. A
crash before the exchange leaves both files. A crash during it leaves the new one waiting, and the
next use of the story puts it in place. Lost messages keep their positions, because others refer to
them by number.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import apsw

from holdfast.adapters.local.catalog.page_images import (
    PageImages,
    Unreadable,
    Values,
    cells,
    page_images,
    scattered_cells,
)
from holdfast.adapters.local.catalog.rows import is_sealed
from holdfast.adapters.local.commit_notes import SLOT_BYTES, NotedChanges, decode_changes
from holdfast.adapters.local.sqlite_connection import new_database
from holdfast.adapters.local.store_files import copy_database, fsync_directory, quarantine
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.story.migrations import CHANGES, OF_THE_STORY, migrate_story
from holdfast.adapters.local.story.rows import COLUMNS, INSERT, sealed, set_fact
from holdfast.adapters.local.story.sqlite import SqliteStory
from holdfast.adapters.local.story.story_file import StoryFile, rebuilt_beside
from holdfast.domain.errors import HoldfastError, NewerStore
from holdfast.domain.ids import SessionId
from holdfast.domain.story import Role
from holdfast.ports.filesystem import FILE_MODE

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.ports.filesystem import Filesystem
    from holdfast.ports.system import Clock

Salvaged: TypeAlias = dict[str, dict[Any, Values]]
"""Verified rows by table and key."""

_TABLES: dict[int, list[str]] = {}
for _table, _columns in COLUMNS.items():
    _TABLES.setdefault(_columns.count(",") + 1, []).append(_table)


def nothing() -> Salvaged:
    return {table: {} for table in COLUMNS}


def salvage_from(pages: PageImages) -> Salvaged:
    found = nothing()
    for number in pages.row_pages():
        _take_page(pages, number, found)
    return found


def _take_page(pages: PageImages, number: int, found: Salvaged) -> None:
    """Older images are used only if a page's newest one is invalid, because they still show deleted
    rows."""
    newest, *older = pages.images[number]
    if _take(cells(pages, number, newest), found) and pages.has_known_kind(number, newest):
        return
    if int.from_bytes(newest[:4], "big") > len(pages.images):
        _take(scattered_cells(pages, newest), found)  # otherwise it is the rest of a long text
    for image in older:
        sound = _take(cells(pages, number, image), found)
        if sound and pages.has_known_kind(number, image):
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


LOST = "[lost to damage of the store]"
_LOCK_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class StoryFindings:
    """The problem of a story, its readable rows, and how many messages are certainly lost."""

    problem: str
    saved: Salvaged
    lost_messages: int


class StoryRepairer:
    """One repair of one story; hold `exclusive` around everything."""

    def __init__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        clock: Clock,
        *,
        cipher: Cipher | None = None,
    ) -> None:
        self._fs = fs
        self._path = layout.story
        self._directory = layout.directory
        self._lock = StoreLock(layout.story_lock, clock, purpose="holdfast repair")
        self._cipher = cipher

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        if not self._path.exists() and not self._is_lost():
            yield  # no lock is created for a story that never existed
            return
        with self._lock.hold(_LOCK_TIMEOUT_S):
            yield

    def examine(self, scratch: Path) -> StoryFindings | None:
        """None if the story is sound or never existed; the story itself is only read."""
        if self._path.exists():
            problem = self._problem(scratch)
        else:
            problem = "the file is missing" if self._is_lost() else None
        if problem is None:
            return None
        saved = self._salvage()
        return StoryFindings(problem, saved, sum(1 for _ in _placeholders(saved)))

    def mend(self, found: StoryFindings, occasion: str) -> None:
        new = rebuilt_beside(self._path)
        for suffix in ("", "-wal", "-shm"):
            new.with_name(new.name + suffix).unlink(missing_ok=True)
        noted = decode_changes(self._lock.read_notes(SLOT_BYTES))
        changes = max(_changes(found.saved), noted.count if noted is not None else 0) + 1
        _write(new, found.saved, changes, self._cipher)
        fsync_directory(self._directory)
        quarantine(self._directory, occasion, self._path)
        new.rename(self._path)
        fsync_directory(self._directory)
        self._lock.note_afresh(NotedChanges(changes).encode())

    def _is_lost(self) -> bool:
        """Whether acknowledged changes exist whose file is missing."""
        if self._path.exists() or rebuilt_beside(self._path).exists():
            return False
        noted = decode_changes(self._lock.read_notes(SLOT_BYTES))
        return noted is not None and noted.count > 0

    def _problem(self, scratch: Path) -> str | None:
        path = scratch / "story.db"
        copy_database(self._path, path)
        file = StoryFile(
            self._fs,
            path,
            self._lock,
            lock_timeout_s=lambda: _LOCK_TIMEOUT_S,
            cipher=self._cipher,
        )
        try:
            with contextlib.closing(SqliteStory(file)) as story:
                return next(iter(story.check()), None)
        except NewerStore:
            raise
        except (HoldfastError, apsw.Error) as error:
            return str(error)

    def _salvage(self) -> Salvaged:
        database, log = _read(self._path), _read(self._path.with_name("story.db-wal"))
        if self._cipher is None:
            return salvage_from(page_images(database, log))
        from holdfast.adapters.local.encryption.decrypted_files import sealed_page_images

        return salvage_from(sealed_page_images(database, log, self._cipher))


def _write(path: Path, saved: Salvaged, changes: int, cipher: Cipher | None) -> None:
    """Complete, folded into one file and synced."""
    with new_database(path, cipher) as db:
        migrate_story(db)
        with db:
            for table, rows in saved.items():
                insert = INSERT[table].replace("INSERT", "INSERT OR IGNORE", 1)
                for key in sorted(rows):
                    if table != "facts" or rows[key][0] != OF_THE_STORY:
                        db.execute(insert, rows[key])
            for row in _placeholders(saved):
                db.execute(INSERT["messages"].replace("INSERT", "INSERT OR IGNORE", 1), row)
            set_fact(db, SessionId(OF_THE_STORY), CHANGES, str(changes))
    os.chmod(path, FILE_MODE)


def _placeholders(saved: Salvaged) -> Iterator[tuple[Any, ...]]:
    """Placeholder rows for messages of which only the position is known."""
    taken: dict[str, set[int]] = {}
    for row in saved["messages"].values():
        taken.setdefault(row[1], set()).add(row[2])
    number = max(saved["messages"], default=0)
    for session_id in sorted(taken):
        for place in range(max(taken[session_id])):
            if place not in taken[session_id]:
                number += 1
                values = (number, session_id, place, Role.SYSTEM.value, LOST, 0, "[]", None)
                yield sealed("messages", values)


def _changes(saved: Salvaged) -> int:
    row = saved["facts"].get((OF_THE_STORY, CHANGES))
    return int(row[2]) if row is not None and str(row[2]).isdecimal() else 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
