"""Facts of components keep their contracts, in plain and sealed files and in memory."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from holdfast.adapters.local.encryption.cipher import Cipher
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.store_errors import SyncFailures
from holdfast.adapters.local.store_notes import (
    Notes,
    StoredAgentStates,
    StoredExternalPaths,
    StoredNestedRepositories,
    StoreNotes,
)
from holdfast.adapters.memory.store import MemoryNotes
from holdfast.ports.store import AgentStates, ExternalPaths, NestedRepositories
from holdfast.testing.store_contracts import (
    AgentStatesContract,
    ExternalPathsContract,
    NestedRepositoriesContract,
)

pytestmark = pytest.mark.requirement("ST-3")


class TestStoredNotes(AgentStatesContract, ExternalPathsContract, NestedRepositoriesContract):
    cipher: ClassVar[Cipher | None] = None

    def notes(self, directory: Path) -> Notes:
        fs = LocalFilesystem()
        return StoreNotes(fs, directory, SyncFailures(fs, directory / "suspect"), self.cipher)

    def open_states(self, directory: Path) -> AgentStates:
        return StoredAgentStates(self.notes(directory))

    def open_paths(self, directory: Path) -> ExternalPaths:
        return StoredExternalPaths(self.notes(directory))

    def open_repositories(self, directory: Path) -> NestedRepositories:
        return StoredNestedRepositories(self.notes(directory))


class TestSealedNotes(TestStoredNotes):
    cipher = Cipher(bytes(32))


class TestNotesInMemory(TestStoredNotes):
    _notes: ClassVar[dict[Path, MemoryNotes]] = {}

    def notes(self, directory: Path) -> Notes:
        return self._notes.setdefault(directory, MemoryNotes())
