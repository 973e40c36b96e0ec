"""A store on the local disk: opened, locked, measured and closed as one thing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.ports.clock import Clock
from holdfast.ports.filesystem import Filesystem
from holdfast.store.atomic_write import atomic_write
from holdfast.store.catalog.sqlite import SqliteCatalog
from holdfast.store.faults import store_trouble
from holdfast.store.layout import StoreLayout
from holdfast.store.objects.local import LocalObjectStore
from holdfast.store.stat_cache import SqliteStatCache
from holdfast.store.store_lock import StoreLock


class LocalStore:
    """See `holdfast.ports.store_access.StoreAccess` for the contract of the shared members."""

    def __init__(
        self, fs: Filesystem, layout: StoreLayout, workspace: Path, clock: Clock, *, purpose: str
    ) -> None:
        layout.read_description()
        self._fs = fs
        self._layout = layout
        self._workspace = workspace
        self._lock = StoreLock(layout.lock, clock, purpose=purpose)
        self._ready = False
        self.lock_timeout_s = 30.0
        with contextlib.ExitStack() as opened, store_trouble("being opened"):
            self.catalog = SqliteCatalog(layout.catalog)
            opened.callback(self.catalog.close)
            self.objects = LocalObjectStore(fs, layout.objects)
            opened.callback(self.objects.close)
            self.stat_cache = SqliteStatCache(layout.stat_cache)
            opened.pop_all()

    @contextmanager
    def exclusive(self, *, wait: bool = True) -> Iterator[None]:
        with self._lock.hold(self.lock_timeout_s if wait else 0.0):
            if not self._ready:
                self.catalog.migrate()
                self.objects.catch_up()
                self._ready = True
            yield

    def make_ready(self) -> None:
        """Readers need no lock, unless the store is new, of an older format, or was cut off."""
        if not self.catalog.is_migrated() or self.objects.is_behind():
            with self.exclusive():
                return

    @property
    def directory(self) -> Path:
        return self._layout.directory

    def read_journal(self) -> bytes | None:
        try:
            return self._layout.journal.read_bytes()
        except FileNotFoundError:
            return None

    def write_journal(self, data: bytes) -> None:
        with store_trouble("writing its journal"):
            atomic_write(self._fs, os.fsencode(self._layout.journal), data)

    def remove_journal(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.unlink(os.fsencode(self._layout.journal))

    def size_bytes(self) -> int:
        return _size_below(self._layout.directory)

    def free_bytes(self) -> int:
        return self._fs.free_bytes(os.fsencode(self._layout.directory))

    def path_inside_workspace(self) -> bytes | None:
        home = self._layout.directory.parent.parent
        try:
            return os.fsencode(home.relative_to(self._workspace))
        except ValueError:
            return None

    def close(self) -> None:
        self.stat_cache.close()
        self.objects.close()
        self.catalog.close()


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
