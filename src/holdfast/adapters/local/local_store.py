"""A store on the local disk: opening, locking, measuring and closing it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.commit_notes import (
    NOTES_BYTES,
    SLOT_BYTES,
    NotedChanges,
    NotedOperation,
    decode_changes,
    decode_operation,
    is_another_file,
    notes_are_damaged,
)
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.adapters.local.stat_cache import SqliteStatCache
from holdfast.adapters.local.store_directory import StorePlace
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import identity_of, sync_directory
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.domain.errors import (
    Busy,
    KeyNeeded,
    Refused,
    StoreDamaged,
    StoreReadOnly,
    StoreSuspect,
    StoreUnwritable,
)
from holdfast.ports.filesystem import Filesystem

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.store_keys import LocalStoreKeys
    from holdfast.adapters.local.encryption.unlock import Unlocked
    from holdfast.adapters.local.objects.maintenance import ScratchIndex
    from holdfast.ports.objects import PackMaintenance
    from holdfast.ports.system import Clock


class LocalStore(StorePlace):
    """A `StorePlace` whose databases are open."""

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
        """`unlock` is called only for an encrypted store, and returns its keys."""
        self.unlocked: Unlocked | None = None
        if layout.read_description()["encrypted"]:
            if unlock is None:
                raise KeyNeeded(f"the store {layout.directory} is encrypted and needs its key")
            self.unlocked = unlock(layout)
            purpose = purpose.split(" ")[0]  # the lock file is not encrypted
        keys = None if self.unlocked is None else self.unlocked.keys
        lock = StoreLock(layout.lock, clock, purpose=purpose)
        super().__init__(fs, layout, workspace, clock, lock, keys)
        self._ready = False
        self._scratch_index: ScratchIndex | None = None
        with contextlib.ExitStack() as opened, store_trouble("opening it"):
            self._require_catalog()
            self.catalog = SqliteCatalog(
                layout.catalog, self._cipher("catalog"), self._sync_failures
            )
            opened.callback(self.catalog.close)
            self.objects = LocalObjectStore(fs, layout.objects, keys, self._sync_failures)
            opened.callback(self.objects.close)
            self.stat_cache = SqliteStatCache(layout.stat_cache, self._cipher("stat cache"))
            self._catalog_file = identity_of(layout.catalog)
            opened.pop_all()
        self.catalog.on_commit = self._note

    @contextmanager
    def hold(self, *, wait: bool = True, read_only: bool = False) -> Iterator[None]:
        with super().hold(wait=wait, read_only=read_only):
            if not self._lock.is_nested:
                self._require_same_files()
            if self._lock.is_shared:
                self._require_acknowledged()
                yield  # nothing can be repaired, and readers do not depend on it
                return
            if self._scratch_index is not None:
                raise Refused(
                    "this process opened the store while it was read-only",
                    hint="open it again: run the command, or restart the program",
                )
            if not self._lock.is_nested and self._sync_failures.is_noted():
                self._read_back()
            if not self._ready:
                if self.unlocked is not None:
                    from holdfast.adapters.local.encryption.unlock import mend_key_slots

                    mend_key_slots(self._fs, self._layout)
                self._require_acknowledged()
                self.catalog.migrate()
                self.objects.catch_up()
                self._ready = True
            yield

    def _read_back(self) -> None:
        from holdfast.adapters.local.sync_readback import read_back  # late: hardly ever needed

        read_back(self._fs, self._layout, self.objects, self._sync_failures, self._keys)

    def _require_same_files(self) -> None:
        """Another process may have replaced files that this one has open."""
        present = identity_of(self._layout.catalog)
        if present is None:
            raise _lost(self._layout.catalog)
        if present != self._catalog_file:
            raise Refused(
                "the store was repaired while this process had it open",
                hint="open it again: run the command, or restart the program",
            )
        self.catalog.require_known_format()
        if self.objects.index_was_replaced():
            self._ready = False

    def was_replaced(self) -> bool:
        """Whether another process has replaced the catalog, as a repair does, or deleted it."""
        return identity_of(self._layout.catalog) != self._catalog_file

    def make_ready(self) -> None:
        """Readers need no lock, unless the store is new, of an older format, or was interrupted."""
        if not self.catalog.is_migrated():
            self._sync_directories()
            with self.hold():
                return
        if self.objects.is_behind():
            try:
                with self.hold():
                    return
            except StoreReadOnly:
                self._use_scratch_index()
            except (StoreSuspect, StoreUnwritable):
                return  # a store that cannot be written now can still be read

    def _use_scratch_index(self) -> None:
        from holdfast.adapters.local.objects.maintenance import ScratchIndex  # hardly ever needed

        with contextlib.suppress(StoreReadOnly, Busy):  # then it is read as far as indexed
            with super().hold(read_only=True):
                self._scratch_index = ScratchIndex(self._fs, self._layout.objects, self._keys)
            self.objects.close()
            self.objects = self._scratch_index.objects

    def _sync_directories(self) -> None:
        """Before the first row, because the process that created these directories may have been
        killed before syncing them."""
        home = self._layout.home
        with store_trouble("creating it"):
            for path in (self._layout.directory, home / "stores", home / "by-path", home):
                with contextlib.suppress(FileNotFoundError):
                    sync_directory(self._fs, os.fsencode(path))
            with contextlib.suppress(PermissionError):  # another process created it long ago
                sync_directory(self._fs, os.fsencode(home.parent))

    def _require_catalog(self) -> None:
        """An empty catalog in place of a lost one would hide everything in the store."""
        if (self._layout.directory / "repair").exists():
            raise StoreDamaged("a repair was interrupted", hint="finish it: holdfast repair --yes")
        packs = self._layout.objects / "packs"
        if self._layout.catalog.exists() or not packs.is_dir():
            return
        if next(packs.iterdir(), None) is not None or self._noted():
            raise _lost(self._layout.catalog)

    def _require_acknowledged(self) -> None:
        """Continuing without acknowledged commits would overwrite what is left of them."""
        problem = self.forgotten()
        if is_another_file(self._lock.read_notes(NOTES_BYTES)):
            problem = "its lock file was replaced"
        if problem:
            raise StoreDamaged(problem, hint="run: holdfast repair")

    def forgotten(self) -> str | None:
        """A description of acknowledged changes that the catalog has lost."""
        for noted in self._noted():  # read first, because the catalog is never behind a note
            if not self.catalog.has(noted):
                return "the catalog has lost its newest acknowledged changes"
        return None

    def _noted(self) -> list[NotedOperation | NotedChanges]:
        notes = self._lock.read_notes(NOTES_BYTES)
        found = (
            decode_operation(notes[:SLOT_BYTES]),
            decode_changes(notes[SLOT_BYTES : 2 * SLOT_BYTES]),
        )
        return [noted for noted in found if noted is not None]

    def _note(self, noted: NotedOperation | NotedChanges) -> None:
        place = 0 if isinstance(noted, NotedOperation) else SLOT_BYTES
        self._lock.note(place, noted.encode())

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if forgotten := self.forgotten():
            yield f"{forgotten} (I3)"
        if notes_are_damaged(self._lock.read_notes(NOTES_BYTES)):
            yield "the record of the last acknowledged change is damaged (I3)"

    def _fold_logs(self) -> None:
        self.catalog.fold_log()
        self.objects.index.fold_log()
        self.stat_cache.fold_log()

    def forget_pages(self) -> None:
        """For a process that keeps the store open without using it, while no other process uses
        it."""
        self.catalog.forget_pages()
        self.objects.index.forget_pages()
        self.stat_cache.forget_pages()

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        if self._keys is None:
            return iter(())
        from holdfast.adapters.local.encryption.decrypted_files import opened_parts  # late: purges

        return opened_parts(path, self._keys, self.objects)

    @property
    def keys(self) -> LocalStoreKeys | None:
        if self.unlocked is None:
            return None
        from holdfast.adapters.local.encryption.store_keys import LocalStoreKeys

        return LocalStoreKeys(self._fs, self._layout, self, self.unlocked)

    def open_packs(self) -> PackMaintenance:
        return self.objects.maintenance()

    def close(self) -> None:
        super().close()
        self.stat_cache.close()
        self.objects.close()
        if self._scratch_index is not None:
            self._scratch_index.close()
        self.catalog.close()


def _lost(path: Path) -> StoreDamaged:
    return StoreDamaged(f"the store's {path.name} is missing", hint="run: holdfast repair")
