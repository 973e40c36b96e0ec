"""A catalog that can be read, however damaged the store's own is: a copy of it, or what is left.

    copy → sound and nothing forgotten: the copy
         → else: page images of the damaged files → proven rows → a new catalog from them

Everything is done in a scratch directory; the store is only read. Of an encrypted catalog, pages
that are not authentic are lost, and rows on the others are kept; the new one is encrypted again.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.adapters.local.catalog.page_images import PageImages, page_images
from holdfast.adapters.local.catalog.rebuild import rebuild
from holdfast.adapters.local.catalog.salvage import Salvaged, salvage_from
from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.commit_notes import (
    NOTES_BYTES,
    SLOT_BYTES,
    decode_changes,
    decode_operation,
    notes_are_damaged,
)
from holdfast.domain.errors import HoldfastError, NewerStore
from holdfast.domain.repair_plan import CatalogLosses

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import StoreKeys
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.adapters.local.store_lock import StoreLock
    from holdfast.ports.clock import Clock

_LOG_BEGINNING = b"\x37\x7f\x06"


class ReadableCatalog:
    """One look, with the store's lock held."""

    def __init__(
        self,
        layout: StoreLayout,
        lock: StoreLock,
        clock: Clock,
        scratch: Path,
        keys: StoreKeys | None,
    ) -> None:
        self._layout = layout
        self._lock = lock
        self._clock = clock
        self._scratch = scratch
        self._cipher = None if keys is None else keys.cipher("catalog")

    def readable(self) -> tuple[Path, CatalogLosses | None, tuple[str, ...]]:
        """A copy that can be read: of the catalog itself, or of what is left of it."""
        copy = self._scratch / "catalog.db"
        problem = self._copy_catalog(copy)
        if problem is None:
            return copy, None, ()
        saved = self._salvage()
        rebuilt = self._scratch / "rebuilt.db"
        notes = self._lock.read_notes(NOTES_BYTES)
        noted = decode_operation(notes[:SLOT_BYTES])
        outcome = rebuild(
            saved,
            rebuilt,
            now_ns=self._clock.now_ns(),
            expected_operations=noted.sequence if noted is not None else 0,
            cipher=self._cipher,
        )
        losses = CatalogLosses(
            problem,
            outcome.lost_checkpoints,
            outcome.lost_operations,
            outcome.lost_settings,
            notes_are_damaged(notes),
        )
        return rebuilt, losses, outcome.unreadable

    def _copy_catalog(self, copy: Path) -> str | None:
        """Copy, and say what is wrong with it, if anything is."""
        source = self._layout.catalog
        if not source.exists():
            return "the file is missing"
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(
                    source.with_name(source.name + suffix), copy.with_name(copy.name + suffix)
                )
        try:
            with contextlib.closing(SqliteCatalog(copy, self._cipher)) as catalog:
                notes = self._lock.read_notes(NOTES_BYTES)
                noted = (decode_operation(notes[:SLOT_BYTES]), decode_changes(notes[SLOT_BYTES:]))
                if notes_are_damaged(notes):
                    return "the note of what it acknowledged last is damaged"
                if not all(catalog.has(note) for note in noted if note is not None):
                    return "it has lost its newest changes, which had been acknowledged"
                catalog.migrate()
                return next(catalog.check(), None)
        except NewerStore:
            raise
        except (HoldfastError, apsw.Error) as error:
            return str(error)

    def _salvage(self) -> Salvaged:
        """From the catalog; when nothing is left there, from a file it was swapped with."""
        places = [self._layout.catalog, self._layout.objects / "index.db", self._layout.stat_cache]
        places += sorted(self._layout.directory.glob("set-aside/*/*.db"))
        places += [self._layout.description, self._layout.journal]
        places += sorted((self._layout.objects / "packs").glob("*.pack"))
        best = Salvaged()
        for path in places:
            database = _read(path)
            for log in self._logs(path) if database else ():
                saved = salvage_from(self._pages(database, log))
                if len(saved.rows["operations"]) > len(best.rows["operations"]):
                    best = saved
            if best.rows["operations"]:
                break
        return best

    def _pages(self, database: bytes, log: bytes) -> PageImages:
        if self._cipher is None:
            return page_images(database, log)
        from holdfast.adapters.local.encryption.decrypted_files import sealed_page_images

        return sealed_page_images(database, log, self._cipher)

    def _logs(self, database: Path) -> list[bytes]:
        """Its own log; then any other file that is one, should it have been swapped with that."""
        own = _read(database.with_name(database.name + "-wal"))
        others = [self._layout.lock, *self._layout.directory.rglob("*-wal")]
        found = [data for data in map(_read, others) if data[:3] == _LOG_BEGINNING]
        return [own, *(data for data in found if data != own)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
