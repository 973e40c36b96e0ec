"""Small files of a store that name paths and digests: the journal of a restore, and other notes.

In an encrypted store each is sealed, with its own name as the context.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.quarantine import quarantine
from holdfast.adapters.local.small_files import atomic_write, read_own_file, sync_directory
from holdfast.adapters.local.store_errors import store_trouble

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.adapters.local.sync_failures import SyncFailures
    from holdfast.ports.filesystem import Filesystem


class StoreNotes:
    """Those of one store, by their file names."""

    def __init__(
        self,
        fs: Filesystem,
        directory: Path,
        sync_failures: SyncFailures,
        cipher: Cipher | None = None,
    ) -> None:
        self._fs = fs
        self._directory = directory
        self._sync_failures = sync_failures
        self._cipher = cipher

    def is_sealed(self) -> bool:
        return self._cipher is not None

    def exists(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self._directory, name))

    def read(self, name: str) -> bytes | None:
        """None when there is no such file; empty when its seal does not match, so that whoever
        decodes it says that it cannot be used."""
        with store_trouble(f"reading its {name}"):
            try:
                data = read_own_file(self._directory / name)
            except FileNotFoundError:
                return None
        if self._cipher is None:
            return data
        from holdfast.adapters.local.encryption.cipher import NotAuthentic

        try:
            return self._cipher.open(data, name.encode())
        except NotAuthentic:
            return b""

    def write(self, name: str, data: bytes) -> None:
        """Durable when it returns."""
        path = self._directory / name
        with store_trouble(f"writing its {name}"), self._sync_failures.syncing(path):
            atomic_write(self._fs, os.fsencode(path), self.sealed(name, data))

    def remove(self, name: str) -> None:
        with store_trouble(f"removing its {name}"), contextlib.suppress(FileNotFoundError):
            self._fs.unlink(os.fsencode(self._directory / name))

    def sync_removals(self) -> None:
        with store_trouble("finishing a removal"):
            sync_directory(self._fs, os.fsencode(self._directory))

    def sealed(self, name: str, data: bytes) -> bytes:
        return data if self._cipher is None else self._cipher.seal(data, name.encode())


class LocalRestoreJournal:
    """See `holdfast.ports.restore_journal.RestoreJournal` for the contract of each member."""

    def __init__(self, notes: StoreNotes, layout: StoreLayout) -> None:
        self._notes = notes
        self._layout = layout

    def read(self) -> bytes | None:
        return self._notes.read(self._layout.journal.name)

    def write(self, data: bytes) -> None:
        self._notes.write(self._layout.journal.name, data)

    def remove(self) -> None:
        self._notes.remove(self._layout.journal.name)

    def quarantine(self, occasion: str) -> None:
        with store_trouble("setting the journal aside"):
            quarantine(self._layout.directory, occasion, self._layout.journal)

    def read_note(self) -> bytes | None:
        return self._notes.read(self._layout.unlocked.name)

    def write_note(self, data: bytes) -> None:
        self._notes.write(self._layout.unlocked.name, data)

    def remove_note(self) -> None:
        self._notes.remove(self._layout.unlocked.name)
