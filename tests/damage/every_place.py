"""Every place of a store, one at a time: one byte changed or one length cut to, and looked at.

    the store is laid out once → one file of it is hurt → the part that reads that file checks it
    → it finds something, or everything that can be read from it is as it was → all is put back

A part is the catalog, the story, the objects with their index, or the stat cache. Where a part
finds nothing and yet tells something else, the whole store has to be checked, and the whole check
has to find it. The same is asked of every file that no part has for itself. Not looked at here:
restores and repairs, which `tests.damage.campaign` tries at fewer places.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.commit_notes import (
    NOTES_BYTES,
    SLOT_BYTES,
    decode_changes,
    decode_operation,
)
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.adapters.local.stat_cache import SqliteStatCache
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.story.sqlite import open_story
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import SessionId
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.objects import all_digests
from tests.damage.campaign import Wrong, look_at_laid_out
from tests.damage.victims import SESSION, STORE_ID, Damage, Victim
from tests.torture.telling import told_of

_FRAME_BYTES = 4096 + 24


def at_every_place(kind: str, files: dict[str, bytes]) -> Sequence[Damage]:
    """Where a damage of this kind changes anything: a byte that is zero cannot be made so."""
    return [
        Damage(kind, name, at)
        for name, data in files.items()
        for at in range(len(data))
        if kind != "zeroed" or data[at]
    ]


class Ward:
    """A victim laid out once, that is damaged and repaired for each case."""

    def __init__(self, victim: Victim, place: Path) -> None:
        self._victim = victim
        self._workspace = victim.lay_out(place, victim.files)
        self._layout = StoreLayout(place / "home" / "stores" / STORE_ID)
        self._fs = LocalFilesystem()
        self._files = {
            os.fspath(self._layout.directory / name): data for name, data in victim.files.items()
        }
        self._parts: dict[str, Callable[[], tuple[bool, object]]] = {
            "catalog.db": self._catalog,
            "story.db": self._story,
            "objects/": self._objects,
            "stat-cache.db": self._stat_cache,
        }
        notes = StoreLock(self._layout.lock, SystemClock(), purpose="").read_notes(NOTES_BYTES)
        self._acknowledged = [
            noted
            for noted in (
                decode_operation(notes[:SLOT_BYTES]),
                decode_changes(notes[SLOT_BYTES : 2 * SLOT_BYTES]),
            )
            if noted is not None
        ]
        assert self._acknowledged
        self._generation, self._remembered = _remembered(self._layout.stat_cache)
        self._put_back()
        self._whole = {name: look()[1] for name, look in self._parts.items()}
        self._put_back()

    def look_at(self, damage: Damage) -> str:
        """ "found", or "dead" where everything that was there is still there."""
        part = next((name for name in self._parts if damage.name.startswith(name)), None)
        if part is not None:
            with self._hurt(damage, part):
                try:
                    found, told = self._parts[part]()
                except HoldfastError:
                    return "found"
                if found or told == self._whole[part]:
                    return "found" if found else "dead"
        with self._hurt(damage, ""):
            return look_at_laid_out(self._victim, self._workspace)

    @contextmanager
    def _hurt(self, damage: Damage, part: str) -> Iterator[None]:
        """Until the end of the block, in which only files of that part are used."""
        path = self._layout.directory / damage.name
        path.write_bytes(damage.apply({damage.name: self._victim.files[damage.name]})[damage.name])
        try:
            yield
        finally:
            self._put_back(part)

    def _put_back(self, part: str = "") -> None:
        """What the last look left behind would be part of the next."""
        prefix = os.path.join(self._layout.directory, part)
        for directory, _, names in os.walk(self._layout.directory):
            for name in names:
                if (path := os.path.join(directory, name)) not in self._files:
                    os.unlink(path)
        for path, data in self._files.items():
            if not path.startswith(prefix):
                continue
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                if file.read() == data:
                    continue
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, 0o600)

    def _catalog(self) -> tuple[bool, object]:
        with contextlib.closing(SqliteCatalog(self._layout.catalog)) as catalog:
            if any(True for _ in catalog.check()):
                return True, None
            if not all(map(catalog.has, self._acknowledged)):
                return True, None
            session = SessionId(SESSION)
            told = (
                catalog.is_migrated(),
                catalog.sessions(),
                catalog.current_session(),
                list(all_checkpoints(catalog)),
                catalog.history(session, records=True),
                catalog.operations(session),
                catalog.newest(),
                dict(catalog.settings()),
            )
            return False, told

    def _story(self) -> tuple[bool, object]:
        with contextlib.closing(
            open_story(self._fs, self._layout, SystemClock(), lambda: 1.0)
        ) as story:
            if any(True for _ in story.check()):
                return True, None
            return False, (told_of(story, SessionId(SESSION)), story.generation())

    def _objects(self) -> tuple[bool, object]:
        with contextlib.closing(LocalObjectStore(self._fs, self._layout.objects)) as objects:
            if objects.is_behind():  # as opening a store does
                objects.catch_up()
            if any(True for _ in objects.check(data=True)):
                return True, None
            return False, sorted(
                all_digests(objects)
            )  # whose bytes the check has compared with them

    def _stat_cache(self) -> tuple[bool, object]:
        """It may forget anything, including the last update; every answer must be one that was
        stored once."""
        with contextlib.closing(SqliteStatCache(self._layout.stat_cache)) as cache:
            told = cache.load(self._generation)
        if not told.items() <= self._remembered:
            raise Wrong("the stat cache tells what nobody told it")
        return False, None


def _remembered(path: Path) -> tuple[str, set[tuple[bytes, bytes]]]:
    """Every answer of a stat cache now, and before each of the commits in its log."""
    with contextlib.closing(connect(path, synchronous="OFF")) as db:
        ((generation,),) = db.execute("SELECT name FROM generation").fetchall()
    log = path.with_name(path.name + "-wal")
    whole = log.read_bytes()
    told: set[tuple[bytes, bytes]] = set()
    for end in range(len(whole), 0, -_FRAME_BYTES):
        log.write_bytes(whole[:end])
        with contextlib.closing(SqliteStatCache(path)) as cache:
            told.update(cache.load(str(generation)).items())
    log.write_bytes(whole)
    assert told
    return str(generation), told
