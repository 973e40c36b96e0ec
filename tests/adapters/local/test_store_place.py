"""A store on this disk keeps the contracts of its lock, journal, space and files, sealed or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.adapters.local.encryption.cipher import StoreKeys
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.store_directory import StorePlace
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.ports.store import (
    Hints,
    NamedPaths,
    PurgeNote,
    Quarantine,
    RestoreJournal,
    SpaceMeter,
)
from holdfast.testing.store_contracts import (
    HintsContract,
    NamedPathsContract,
    PurgeNoteContract,
    QuarantineContract,
    RestoreJournalContract,
    SpaceMeterContract,
    StoreFilesContract,
    WriterLockContract,
)

pytestmark = pytest.mark.requirement("ST-3")


class _Place:
    """The same store each time a directory is given."""

    keys: StoreKeys | None = None

    @contextmanager
    def opened(self, directory: Path) -> Iterator[StorePlace]:
        fs, layout = LocalFilesystem(), StoreLayout(directory / "home" / "stores" / ("0" * 20))
        if not layout.exists():
            layout.create(fs, directory / "workspace")
        yield StorePlace(
            fs,
            layout,
            directory / "workspace",
            SystemClock(),
            StoreLock(layout.lock, SystemClock(), purpose="test"),
            self.keys,
        )

    open_lock = opened
    open_files = opened

    @contextmanager
    def open_journal(self, directory: Path) -> Iterator[RestoreJournal]:
        with self.opened(directory) as place:
            yield place.journal

    @contextmanager
    def open_meter(self, directory: Path) -> Iterator[SpaceMeter]:
        with self.opened(directory) as place:
            self.directory = place.directory
            yield place.space

    def fill(self, meter: SpaceMeter, size_bytes: int) -> None:
        (self.directory / "file").write_bytes(bytes(size_bytes))


class _Sealed(_Place):
    keys = StoreKeys(bytes(32))


class TestWriterLock(_Place, WriterLockContract):
    pass


class TestRestoreJournal(_Place, RestoreJournalContract):
    pass


class TestSealedRestoreJournal(_Sealed, RestoreJournalContract):
    pass


class TestSpaceMeter(_Place, SpaceMeterContract):
    pass


class TestSealedSpaceMeter(_Sealed, SpaceMeterContract):
    pass


class TestStoreFiles(_Place, StoreFilesContract):
    pass


class TestNotes(_Place, HintsContract, NamedPathsContract, PurgeNoteContract, QuarantineContract):
    def place(self, directory: Path) -> StorePlace:
        with self.opened(directory) as place:
            return place

    def open_note(self, directory: Path) -> PurgeNote:
        return self.place(directory).purge_note

    def open_hints(self, directory: Path) -> Hints:
        return self.place(directory).hints

    def open_named(self, directory: Path) -> NamedPaths:
        return self.place(directory).named_paths

    def open_quarantine(self, directory: Path) -> Quarantine:
        return self.place(directory).quarantine

    def is_sealed(self) -> bool:
        return self.keys is not None


class TestSealedNotes(_Sealed, TestNotes):
    pass


class TestSealedStoreFiles(_Sealed, StoreFilesContract):
    pass
