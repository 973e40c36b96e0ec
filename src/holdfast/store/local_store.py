"""A store on the local disk: opened, locked, measured and closed as one thing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import KeyNeeded, Refused, StoreDamaged, StoreSuspect
from holdfast.domain.ids import WorkspaceId
from holdfast.ports.clock import Clock
from holdfast.ports.filesystem import Filesystem
from holdfast.store.acknowledged import (
    SLOT_BYTES,
    NotedChanges,
    NotedOperation,
    decode_changes,
    decode_operation,
)
from holdfast.store.atomic_write import atomic_write, sync_directory
from holdfast.store.catalog.sqlite import SqliteCatalog
from holdfast.store.faults import store_trouble
from holdfast.store.layout import StoreLayout
from holdfast.store.objects.local import LocalObjectStore
from holdfast.store.stat_cache import SqliteStatCache
from holdfast.store.store_lock import StoreLock
from holdfast.store.suspicion import Suspicion

if TYPE_CHECKING:
    from holdfast.store.encryption.key_slots import KeySlot, KeySlots, Secret
    from holdfast.store.encryption.unlocking import Unlocked


class LocalStore:
    """See `holdfast.ports.store_access.StoreAccess` for the contract of the shared members."""

    def __init__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        workspace: Path,
        clock: Clock,
        *,
        purpose: str,
        unlock: Callable[[StoreLayout], Unlocked] | None = None,
    ) -> None:
        """`unlock` is called for the keys of a store that is encrypted, and only then."""
        self.unlocked: Unlocked | None = None
        if layout.read_description()["encrypted"]:
            if unlock is None:
                raise KeyNeeded(f"the store {layout.directory} is encrypted and needs its key")
            self.unlocked = unlock(layout)
            purpose = purpose.split(" ")[0]  # the lock file is not encrypted
        keys = None if self.unlocked is None else self.unlocked.keys
        self._note_cipher = keys.cipher("journal") if keys else None
        self._fs = fs
        self._layout = layout
        self._workspace = workspace
        self._lock = StoreLock(layout.lock, clock, purpose=purpose)
        self._ready = False
        self._entered = 0
        self.lock_timeout_s = 30.0
        with contextlib.ExitStack() as opened, store_trouble("being opened"):
            self._suspicion = Suspicion(fs, layout.suspect)
            self._require_catalog()
            self.catalog = SqliteCatalog(
                layout.catalog, keys.cipher("catalog") if keys else None, self._suspicion
            )
            opened.callback(self.catalog.close)
            self.objects = LocalObjectStore(fs, layout.objects, keys, self._suspicion)
            opened.callback(self.objects.close)
            cache_cipher = keys.cipher("stat cache") if keys else None
            self.stat_cache = SqliteStatCache(layout.stat_cache, cache_cipher)
            self._catalog_file = _identity(layout.catalog)
            opened.pop_all()
        self.catalog.on_commit = self._note

    @contextmanager
    def exclusive(self, *, wait: bool = True) -> Iterator[None]:
        with self._lock.hold(self.lock_timeout_s if wait else 0.0):
            present = _identity(self._layout.catalog)
            if present is None:
                raise _lost(self._layout.catalog)
            if present != self._catalog_file:
                raise Refused(
                    "the store was repaired while this process had it open",
                    hint="open it again: run the command, or restart the program",
                )
            if self._entered == 0 and self._suspicion.is_noted():
                self._read_back()
            if not self._ready:
                if self.unlocked is not None:
                    from holdfast.store.encryption.unlocking import mend_key_slots

                    mend_key_slots(self._fs, self._layout)
                self._require_acknowledged()
                self.catalog.migrate()
                self.objects.catch_up()
                self._ready = True
            self._entered += 1
            try:
                yield
            finally:
                self._entered -= 1

    def _read_back(self) -> None:
        from holdfast.store.reading_back import read_back  # imported late: hardly ever needed

        read_back(self._fs, self._layout, self.objects, self._suspicion)

    def make_ready(self) -> None:
        """Readers need no lock, unless the store is new, of an older format, or was cut off."""
        if not self.catalog.is_migrated():
            self._sync_way_to_store()
            with self.exclusive():
                return
        if self.objects.is_behind():
            # A store that takes nothing for now can still be read.
            with contextlib.suppress(StoreSuspect), self.exclusive():
                return

    def _sync_way_to_store(self) -> None:
        """Before the first row: who made these directories may have been killed before its sync."""
        home = self._layout.home
        with store_trouble("being made"):
            for path in (self._layout.directory, home / "stores", home / "by-path", home):
                with contextlib.suppress(FileNotFoundError):
                    sync_directory(self._fs, os.fsencode(path))
            with contextlib.suppress(PermissionError):  # made by somebody else, long ago
                sync_directory(self._fs, os.fsencode(home.parent))

    def _require_catalog(self) -> None:
        """An empty catalog made in the place of a lost one would hide everything that is there."""
        packs = self._layout.objects / "packs"
        if self._layout.catalog.exists() or not packs.is_dir():
            return
        if next(packs.iterdir(), None) is not None or self._noted():
            raise _lost(self._layout.catalog)

    def _require_acknowledged(self) -> None:
        """Going on without commits that were acknowledged would write over what is left of them."""
        if problem := self.forgotten():
            raise StoreDamaged(problem, hint="run: holdfast repair")

    def forgotten(self) -> str | None:
        """What the catalog no longer knows although it was acknowledged, in words."""
        for noted in self._noted():  # read first: the catalog is never behind a note
            if not self.catalog.has(noted):
                return "the catalog has lost its newest changes, which had been acknowledged"
        return None

    def _noted(self) -> list[NotedOperation | NotedChanges]:
        notes = self._lock.read_notes(2 * SLOT_BYTES)
        found = (decode_operation(notes[:SLOT_BYTES]), decode_changes(notes[SLOT_BYTES:]))
        return [noted for noted in found if noted is not None]

    def _note(self, noted: NotedOperation | NotedChanges) -> None:
        place = 0 if isinstance(noted, NotedOperation) else SLOT_BYTES
        self._lock.note(place, noted.encode())

    def key_slots(self) -> tuple[KeySlot, ...]:
        """Of an encrypted store: every key that opens it."""
        from holdfast.store.encryption.unlocking import read_key_slots

        return read_key_slots(self._layout).slots

    def add_key(self, secret: Secret) -> None:
        """Let one more secret open this encrypted store."""
        self._change_slots(lambda slots, by: slots.adding(by.keys, secret))

    def change_key(self, secret: Secret) -> None:
        """Put a secret in the place of the one that opened the store."""
        self._change_slots(lambda slots, by: slots.replacing(by.slot_id, by.keys, secret))

    def remove_key(self, slot_id: str) -> None:
        self._change_slots(lambda slots, _: slots.without(slot_id))

    def _change_slots(self, change: Callable[[KeySlots, Unlocked], KeySlots]) -> None:
        from holdfast.store.encryption.unlocking import read_key_slots, write_key_slots

        with self.exclusive():
            if self.unlocked is None:
                raise Refused("the store is not encrypted: it has no keys")
            write_key_slots(
                self._fs, self._layout, change(read_key_slots(self._layout), self.unlocked)
            )

    @property
    def directory(self) -> Path:
        return self._layout.directory

    @property
    def workspace_id(self) -> WorkspaceId:
        return WorkspaceId(self._layout.directory.name)

    def read_journal(self) -> bytes | None:
        return self._read(self._layout.journal)

    def write_journal(self, data: bytes) -> None:
        self._write(self._layout.journal, data)

    def remove_journal(self) -> None:
        self._remove(self._layout.journal)

    def read_note(self) -> bytes | None:
        return self._read(self._layout.unlocked)

    def write_note(self, data: bytes) -> None:
        self._write(self._layout.unlocked, data)

    def remove_note(self) -> None:
        self._remove(self._layout.unlocked)

    def read_purge_note(self) -> bytes | None:
        return self._read(self._layout.purge_note)

    def write_purge_note(self, data: bytes) -> None:
        self._write(self._layout.purge_note, data)

    def remove_purge_note(self) -> None:
        self._remove(self._layout.purge_note)
        with store_trouble("finishing a removal"):
            sync_directory(self._fs, os.fsencode(self._layout.directory))

    def _read(self, path: Path) -> bytes | None:
        """One of the small files that say what is under way; they name paths and digests, so in
        an encrypted store each is sealed, with its own name as the context."""
        with store_trouble(f"reading its {path.name}"):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                return None
        if self._note_cipher is None:
            return data
        from holdfast.store.encryption.cipher import NotAuthentic

        try:
            return self._note_cipher.open(data, path.name.encode())
        except NotAuthentic:
            return b""  # whoever decodes it says that it cannot be used

    def _write(self, path: Path, data: bytes) -> None:
        if self._note_cipher is not None:
            data = self._note_cipher.seal(data, path.name.encode())
        with store_trouble(f"writing its {path.name}"), self._suspicion.syncing(path):
            atomic_write(self._fs, os.fsencode(path), data)

    def _remove(self, path: Path) -> None:
        with store_trouble(f"removing its {path.name}"), contextlib.suppress(FileNotFoundError):
            self._fs.unlink(os.fsencode(path))

    def erase_leftovers(self) -> None:
        with store_trouble("removing temporary files"):
            for path in self._layout.directory.glob(".*.new"):
                self._fs.unlink(os.fsencode(path))
            sync_directory(self._fs, os.fsencode(self._layout.directory))

    def files(self) -> Iterator[Path]:
        for directory, _, names in os.walk(self._layout.directory):
            yield from (Path(directory, name) for name in sorted(names))

    def size_bytes(self) -> int:
        return _size_below(self._layout.directory)

    def free_bytes(self) -> int:
        return self._fs.free_bytes(os.fsencode(self._layout.directory))

    def path_inside_workspace(self) -> bytes | None:
        try:
            return os.fsencode(self._layout.home.relative_to(self._workspace))
        except ValueError:
            return None

    def close(self) -> None:
        self.stat_cache.close()
        self.objects.close()
        self.catalog.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _lost(path: Path) -> StoreDamaged:
    return StoreDamaged(f"the store has lost its {path.name}", hint="run: holdfast repair")


def _size_below(directory: Path) -> int:
    total = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    total += _size_below(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue  # a log file that SQLite has just removed
    return total
