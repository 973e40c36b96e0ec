"""Verification after a failed fsync: the data is read from the disk and not from memory.

    packs     → fsync, drop the system's cache, read every object again, compare its digest
    databases → fold the log, fsync, drop the cache, let SQLite check its own structure

Data that reads back correctly is kept. An unreadable object is dropped from the index, as if its
pack were gone, so that the next save stores such content again; `check` names the checkpoints that
need it. A damaged database keeps the store closed. Not guaranteed: that the system reads from the
disk, if it keeps pages in memory against the advice to drop them, as for files in use elsewhere.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.adapters.local.objects.index import Location
from holdfast.adapters.local.sqlite_connection import connect, translate
from holdfast.adapters.local.store_errors import suspect
from holdfast.adapters.local.store_files import sync, sync_directory
from holdfast.domain.errors import StoreDamaged

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher, StoreKeys
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.adapters.local.objects.object_store import LocalObjectStore
    from holdfast.adapters.local.store_errors import SyncFailures
    from holdfast.domain.ids import Digest
    from holdfast.ports.filesystem import Filesystem


def read_back(
    fs: Filesystem,
    layout: StoreLayout,
    objects: LocalObjectStore,
    sync_failures: SyncFailures,
    keys: StoreKeys | None = None,
) -> None:
    """Called with the store's lock held; returns when nothing is suspect, else raises."""
    databases = {"catalog": layout.catalog, "index": layout.objects / "index.db"}
    subjects = sync_failures.subjects()
    everything = "." in subjects
    try:
        for path in (layout.directory, layout.objects, layout.objects / "packs"):
            sync_directory(fs, os.fsencode(path))
        for purpose, path in databases.items():
            if everything or path.relative_to(layout.directory).as_posix() in subjects:
                read_back_database(fs, path, keys.cipher(purpose) if keys else None)
        for number in objects.packs.numbers():
            path = Path(os.fsdecode(objects.packs.path(number)))
            if everything or path.relative_to(layout.directory).as_posix() in subjects:
                _read_back_pack(fs, objects, number, path)
        sync_failures.clear()
    except OSError as error:
        raise suspect(subjects) from error


def _drop_cached(fs: Filesystem, path: Path) -> None:
    """Only clean pages can be dropped, so an fsync that fails again ends the attempt."""
    fd = fs.open(os.fsencode(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        sync(fs, fd)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        fs.close(fd)


def _read_back_pack(fs: Filesystem, objects: LocalObjectStore, number: int, path: Path) -> None:
    with objects.lock:
        objects.forget_cached()
        _drop_cached(fs, path)
        known = objects.index.pack_lengths().get(number)
        if known is None:
            return  # nothing in it was ever acknowledged
        sound: list[tuple[Digest, Location]] = []
        lost = 0
        for digest, place in objects.index.locations():
            if place.pack != number:
                continue
            try:
                objects.read(digest)
                sound.append((digest, place))
            except StoreDamaged:
                lost += 1
        objects.forget_cached()
        if lost:
            objects.index.start_generation()
            objects.index.replace_pack(number, sound, (number, known))


def read_back_database(fs: Filesystem, path: Path, cipher: Cipher | None) -> None:
    """With separate connections, because those in use have pages in memory that were never read
    back."""
    _drop_cached(fs, path)
    try:
        with closing(connect(path, synchronous="FULL", cipher=cipher)) as connection:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        _drop_cached(fs, path)
        with closing(connect(path, synchronous="FULL", cipher=cipher)) as connection:
            problems = connection.execute("PRAGMA integrity_check(1)").fetchall()
    except (apsw.BusyError, apsw.LockedError):
        raise suspect({path.name}) from None
    except apsw.Error as error:
        raise translate(error, path) from error
    if problems != [("ok",)]:
        raise StoreDamaged(
            f"the store's {path.name} is damaged: {problems[0][0]}",
            hint="run: holdfast check",
        )
