"""Repair of a store that cannot be opened: description, catalog and index.

    look: copies of the databases in a scratch directory; nothing in the store is written
    mend: description rewritten → the rebuilt catalog, announced by a marker, put in place of the
          old one → index rebuilt; everything replaced is quarantined first

A crash while the catalog is replaced leaves the marker, and the next repair finishes: the marker is
durable before the old files move, and names the new catalog, which is complete by then.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.catalog.rebuild import ReadableCatalog
from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.commit_notes import SLOT_BYTES
from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.adapters.local.objects.packs import pack_name
from holdfast.adapters.local.stat_cache import SqliteStatCache
from holdfast.adapters.local.store_directory import StorePlace
from holdfast.adapters.local.store_files import (
    atomic_write,
    copy_database,
    fsync_directory,
    quarantine,
    quarantine_directory,
)
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.story.repair import StoryFindings, StoryRepairer
from holdfast.domain.errors import NewerStore, StoreDamaged
from holdfast.domain.repair_plan import CatalogLosses
from holdfast.ports.filesystem import DIRECTORY_MODE, FILE_MODE, Filesystem
from holdfast.ports.system import Clock

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher, StoreKeys
    from holdfast.domain.ids import Digest

_SCRATCH = "repairing"
_MARKER = "repair"
_REPORT = "unreadable-rows.json"
_LOCK_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Bench:
    """A store under repair: readable replacements for damaged parts, and the problems."""

    catalog: SqliteCatalog
    objects: LocalObjectStore
    place: StorePlace
    stat_cache: SqliteStatCache
    description_problem: str | None
    catalog_losses: CatalogLosses | None
    unreadable_rows: tuple[str, ...]
    index_problem: str | None
    unfinished: bool
    story: StoryFindings | None


class StoreRepairer:
    """One repair of one store; hold `exclusive` around everything."""

    def __init__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        workspace: Path,
        clock: Clock,
        *,
        keys: StoreKeys | None = None,
    ) -> None:
        """`keys` are the keys of an encrypted store."""
        self._keys = keys
        self._fs = fs
        self._layout = layout
        self._workspace = workspace
        self._clock = clock
        self._lock = StoreLock(layout.lock, clock, purpose="holdfast repair")
        self._story = StoryRepairer(fs, layout, clock, cipher=self._cipher("story"))
        self._scratch = layout.directory / _SCRATCH
        self._marker = layout.directory / _MARKER

    def _cipher(self, role: str) -> Cipher | None:
        return None if self._keys is None else self._keys.cipher(role)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._lock.hold(_LOCK_TIMEOUT_S), self._story.exclusive():
            self._clear_scratch()
            try:
                yield
            finally:
                self._clear_scratch()

    @contextmanager
    def examine(self) -> Iterator[Bench]:
        """Examine everything; the store itself is only read."""
        self._clear_scratch()
        self._scratch.mkdir(mode=DIRECTORY_MODE)
        look = ReadableCatalog(self._layout, self._lock, self._clock, self._scratch, self._keys)
        catalog_path, losses, rows = look.readable()
        with contextlib.ExitStack() as opened:
            catalog = SqliteCatalog(catalog_path, self._cipher("catalog"))
            opened.callback(catalog.close)
            catalog.migrate()
            objects = LocalObjectStore(
                self._fs, self._layout.objects, self._keys, index=self._scratch / "index.db"
            )
            opened.callback(objects.close)
            objects.catch_up()
            stat_cache = SqliteStatCache(
                self._scratch / "stat-cache.db", self._cipher("stat cache")
            )
            opened.callback(stat_cache.close)
            yield Bench(
                catalog,
                objects,
                StorePlace(
                    self._fs, self._layout, self._workspace, self._clock, self._lock, self._keys
                ),
                stat_cache,
                self._description_problem(),
                losses,
                rows,
                self._index_problem(objects),
                self._marker.exists(),
                self._story.examine(self._scratch),
            )

    def _description_problem(self) -> str | None:
        try:
            self._layout.read_description()
        except NewerStore as error:
            if self._layout.description_is_sealed():
                raise
            return error.message
        except StoreDamaged as error:
            return error.message
        return None

    def _index_problem(self, rebuilt: LocalObjectStore) -> str | None:
        """Why the store's own index does not match the packs."""
        own = self._layout.objects / "index.db"
        if not own.exists():
            return "the file is missing"
        copy = self._scratch / "copied-index.db"
        copy_database(own, copy)
        try:
            objects = LocalObjectStore(self._fs, self._layout.objects, self._keys, index=copy)
            with contextlib.closing(objects):
                problems = objects.index.problems()
                if problems:
                    return problems[0]
                if objects.is_behind():
                    return None  # the next opening brings it up to date, as after any crash
                known, said = dict(objects.index.locations()).keys(), set(rebuilt.index.digests())
                # A repair leaves out a record whose base is lost; it stays in its pack.
                more = any(map(partial(_can_be_read, rebuilt), said - known))
                return "it does not match the packs" if known - said or more else None
        except StoreDamaged as error:
            return error.message

    def mend(self, bench: Bench, occasion: str) -> None:
        """Apply what `examine` found; the store can be opened afterwards."""
        if bench.unfinished:
            self._finish()
        if bench.description_problem is not None:
            quarantine(self._layout.directory, occasion, self._layout.description)
            self._layout.describe(self._fs, self._workspace)
        if bench.catalog_losses is not None and not bench.unfinished:
            self._exchange_catalog(bench, occasion)
        if bench.index_problem is not None:
            self._keep_tails(bench.objects, occasion)
            objects = LocalObjectStore(self._fs, self._layout.objects, self._keys)
            with contextlib.closing(objects):
                objects.rebuild_index()
        if bench.story is not None:
            self._story.mend(bench.story, occasion)
        self._note_newest()

    def _keep_tails(self, objects: LocalObjectStore, occasion: str) -> None:
        """Bytes after a pack's last sound record look like an interrupted write, and the next write
        replaces them. They may be a damaged record, so a copy of the pack is kept."""
        known = objects.index.pack_lengths()
        numbers = [n for n in objects.packs.numbers() if objects.packs.size_of(n) > known.get(n, 0)]
        if not numbers:
            return
        place = quarantine_directory(self._layout.directory, occasion)
        for number in numbers:
            with (place / pack_name(number)).open("xb") as copy:
                os.fchmod(copy.fileno(), FILE_MODE)
                with Path(os.fsdecode(objects.packs.path(number))).open("rb") as pack:
                    shutil.copyfileobj(pack, copy)
                copy.flush()
                sync_to_disk(copy.fileno())
        fsync_directory(place)

    def _exchange_catalog(self, bench: Bench, occasion: str) -> None:
        place = quarantine_directory(self._layout.directory, occasion)
        report = json.dumps({"unreadable_rows": list(bench.unreadable_rows)}, indent=1).encode()
        cipher = self._cipher("journal")
        sealed = report if cipher is None else cipher.seal(report, _REPORT.encode())
        atomic_write(self._fs, os.fsencode(place / _REPORT), sealed)
        new = place / "rebuilt-catalog.db"
        bench.catalog.close()
        (self._scratch / "rebuilt.db").rename(new)
        fsync_directory(place)
        marker = {"catalog": str(new.relative_to(self._layout.directory))}
        atomic_write(self._fs, os.fsencode(self._marker), json.dumps(marker).encode())
        self._finish()

    def _finish(self) -> None:
        """From the marker on: old files quarantined, the new catalog in place, the marker
        deleted."""
        try:
            marker = json.loads(self._marker.read_bytes())
            new = self._layout.directory / str(marker["catalog"])
            if new.exists() and new.resolve().is_relative_to(self._layout.directory.resolve()):
                quarantine(self._layout.directory, new.parent.name, self._layout.catalog)
                new.rename(self._layout.catalog)
        except (ValueError, KeyError, TypeError):
            quarantine(self._layout.directory, "repair", self._marker)
        fsync_directory(self._layout.directory)
        self._marker.unlink(missing_ok=True)
        fsync_directory(self._layout.directory)

    def _note_newest(self) -> None:
        """Only what exists now has to be remembered."""
        cipher = self._cipher("catalog")
        with contextlib.closing(SqliteCatalog(self._layout.catalog, cipher)) as catalog:
            catalog.migrate()
            operation, changes = catalog.newest()
        encoded = operation.encode() if operation is not None else b" " * SLOT_BYTES
        self._lock.note_afresh(encoded + changes.encode())

    def _clear_scratch(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)


def _can_be_read(objects: LocalObjectStore, digest: Digest) -> bool:
    try:
        objects.read(digest)
    except StoreDamaged:
        return False
    return True
