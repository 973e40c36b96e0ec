"""Making a store that cannot be opened one that can: description, catalog and index.

    look: copies of the databases in a scratch directory, nothing of the store is written
    mend: description rewritten → the rebuilt catalog, announced by a marker, put in the place of
          the old one → index made again; whatever is replaced is set aside first

A crash while the catalog is exchanged leaves the marker, and the next repair finishes: the marker
is durable before the old files move, and names the new catalog, which is complete by then.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from holdfast.domain.errors import HoldfastError, NewerStore, StoreDamaged
from holdfast.domain.repair_plans import CatalogLosses
from holdfast.ports.clock import Clock
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.story import Story
from holdfast.store.acknowledged import (
    NOTES_BYTES,
    SLOT_BYTES,
    decode_changes,
    decode_operation,
    notes_are_damaged,
)
from holdfast.store.atomic_write import DIRECTORY_MODE, atomic_write
from holdfast.store.catalog.rebuilding import rebuild
from holdfast.store.catalog.salvage import Salvaged, salvage
from holdfast.store.catalog.sqlite import SqliteCatalog
from holdfast.store.layout import StoreLayout
from holdfast.store.objects.local import LocalObjectStore
from holdfast.store.setting_aside import make_place, set_aside, sync
from holdfast.store.stat_cache import SqliteStatCache
from holdfast.store.store_lock import StoreLock
from holdfast.store.store_place import StorePlace
from holdfast.store.story.opening import open_story
from holdfast.store.story.repairing import StoryFindings, StoryMender
from holdfast.store.suspicion import Suspicion

_SCRATCH = "repairing"
_MARKER = "repair"
_LOG_BEGINNING = b"\x37\x7f\x06"
_LOCK_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Bench:
    """A store laid open: readable stand-ins for what may be damaged, and what is wrong."""

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


class StoreMender:
    """One repair of one store; hold `exclusive` around everything."""

    def __init__(self, fs: Filesystem, layout: StoreLayout, workspace: Path, clock: Clock) -> None:
        self._fs = fs
        self._layout = layout
        self._workspace = workspace
        self._clock = clock
        self._lock = StoreLock(layout.lock, clock, purpose="holdfast repair")
        self._story = StoryMender(fs, layout, clock)
        self._scratch = layout.directory / _SCRATCH
        self._marker = layout.directory / _MARKER

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
        """Look at everything; the store itself is only read."""
        self._clear_scratch()
        self._scratch.mkdir(mode=DIRECTORY_MODE)
        catalog_path, losses, rows = self._readable_catalog()
        with contextlib.ExitStack() as opened:
            catalog = SqliteCatalog(catalog_path)
            opened.callback(catalog.close)
            catalog.migrate()
            objects = LocalObjectStore(
                self._fs, self._layout.objects, index=self._scratch / "index.db"
            )
            opened.callback(objects.close)
            objects.catch_up()
            stat_cache = SqliteStatCache(self._scratch / "stat-cache.db")
            opened.callback(stat_cache.close)
            yield Bench(
                catalog,
                objects,
                StorePlace(
                    self._fs,
                    self._layout,
                    self._workspace,
                    self._lock,
                    Suspicion(self._fs, self._layout.suspect),
                    open_story=self._opened_story,
                ),
                stat_cache,
                self._description_problem(),
                losses,
                rows,
                self._index_problem(objects),
                self._marker.exists(),
                self._story.examine(self._scratch),
            )

    def _opened_story(self) -> Story:
        return open_story(self._fs, self._layout, self._clock, lambda: _LOCK_TIMEOUT_S)

    def _readable_catalog(self) -> tuple[Path, CatalogLosses | None, tuple[str, ...]]:
        """A copy that can be read: of the catalog itself, or of what is left of it."""
        copy = self._scratch / "catalog.db"
        problem = self._copy_catalog(copy)
        if problem is None:
            return copy, None, ()
        saved = self._salvage()
        rebuilt = self._scratch / "rebuilt.db"
        noted = decode_operation(self._lock.read_notes(SLOT_BYTES))
        outcome = rebuild(
            saved,
            rebuilt,
            now_ns=self._clock.now_ns(),
            expected_operations=noted.sequence if noted is not None else 0,
        )
        losses = CatalogLosses(
            problem, outcome.lost_checkpoints, outcome.lost_operations, outcome.lost_settings
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
            with contextlib.closing(SqliteCatalog(copy)) as catalog:
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
                saved = salvage(database, log)
                if len(saved.rows["operations"]) > len(best.rows["operations"]):
                    best = saved
            if best.rows["operations"]:
                break
        return best

    def _logs(self, database: Path) -> list[bytes]:
        """Its own log; then any other file that is one, should it have been swapped with that."""
        own = _read(database.with_name(database.name + "-wal"))
        others = [self._layout.lock, *self._layout.directory.rglob("*-wal")]
        found = [data for data in map(_read, others) if data[:3] == _LOG_BEGINNING]
        return [own, *(data for data in found if data != own)]

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
        """Why the store's own index is not what the packs say."""
        own = self._layout.objects / "index.db"
        if not own.exists():
            return "the file is missing"
        copy = self._scratch / "copied-index.db"
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(
                    own.with_name(own.name + suffix), copy.with_name(copy.name + suffix)
                )
        try:
            objects = LocalObjectStore(self._fs, self._layout.objects, index=copy)
            with contextlib.closing(objects):
                problems = objects.index.problems()
                if problems:
                    return problems[0]
                if objects.is_behind():
                    return None  # caught up by the next opening, like after any crash
                known = dict(objects.index.locations())
                same = known.keys() == set(rebuilt.digests())
                return None if same else "it does not say what the packs say"
        except StoreDamaged as error:
            return error.message

    def mend(self, bench: Bench, occasion: str) -> None:
        """Carry out what `examine` found; the store can be opened afterwards."""
        if bench.unfinished:
            self._finish()
        if bench.description_problem is not None:
            set_aside(self._layout.directory, occasion, self._layout.description)
            self._layout.describe(self._fs, self._workspace)
        if bench.catalog_losses is not None and not bench.unfinished:
            self._exchange_catalog(bench, occasion)
        if bench.index_problem is not None:
            with contextlib.closing(LocalObjectStore(self._fs, self._layout.objects)) as objects:
                objects.rebuild_index()
        if bench.story is not None:
            self._story.mend(bench.story, occasion)
        self._note_newest()

    def _exchange_catalog(self, bench: Bench, occasion: str) -> None:
        place = make_place(self._layout.directory, occasion)
        report = json.dumps({"unreadable_rows": list(bench.unreadable_rows)}, indent=1)
        atomic_write(self._fs, os.fsencode(place / "unreadable-rows.json"), report.encode())
        new = place / "rebuilt-catalog.db"
        bench.catalog.close()
        (self._scratch / "rebuilt.db").rename(new)
        sync(place)
        marker = {"catalog": str(new.relative_to(self._layout.directory))}
        atomic_write(self._fs, os.fsencode(self._marker), json.dumps(marker).encode())
        self._finish()

    def _finish(self) -> None:
        """From the marker on: old files aside, the new catalog in place, the marker gone."""
        try:
            marker = json.loads(self._marker.read_bytes())
            new = self._layout.directory / str(marker["catalog"])
            if new.exists() and new.resolve().is_relative_to(self._layout.directory.resolve()):
                set_aside(self._layout.directory, new.parent.name, self._layout.catalog)
                new.rename(self._layout.catalog)
        except (ValueError, KeyError, TypeError):
            set_aside(self._layout.directory, "repair", self._marker)
        sync(self._layout.directory)
        self._marker.unlink(missing_ok=True)
        sync(self._layout.directory)

    def _note_newest(self) -> None:
        """What is there now is all there is to remember."""
        with contextlib.closing(SqliteCatalog(self._layout.catalog)) as catalog:
            catalog.migrate()
            operation, changes = catalog.newest()
        encoded = operation.encode() if operation is not None else b" " * SLOT_BYTES
        self._lock.note_afresh(encoded + changes.encode())

    def _clear_scratch(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
