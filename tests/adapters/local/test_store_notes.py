"""Facts of components keep their contracts, in plain and sealed files and in memory."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize("cipher", [None, Cipher(bytes(32))], ids=["plain", "sealed"])
def test_a_hint_that_cannot_be_used_is_none(tmp_path: Path, cipher: Cipher | None) -> None:
    fs = LocalFilesystem()
    notes = StoreNotes(fs, tmp_path, SyncFailures(fs, tmp_path / "suspect"), cipher)
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("hint")
    assert notes.write_hint("hint", b"hint")
    assert notes.read_hint("hint") == b"hint"
    assert [notes.read_hint(name) for name in ("directory", "link", "missing")] == [None] * 3
    assert not notes.read_hint("pipe")
    assert not notes.write_hint("directory", b"hint")
    assert notes.write_hint("link", b"replaces the link")
    assert (tmp_path / "hint").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*"))


def test_a_hint_that_is_not_sealed_or_has_another_name_is_not_believed(tmp_path: Path) -> None:
    fs = LocalFilesystem()
    notes = StoreNotes(fs, tmp_path, SyncFailures(fs, tmp_path / "suspect"), Cipher(bytes(32)))
    assert notes.write_hint("one", b"hint")
    (tmp_path / "other").write_bytes((tmp_path / "one").read_bytes())
    (tmp_path / "plain").write_bytes(b"hint")
    assert [notes.read_hint(name) for name in ("one", "other", "plain")] == [b"hint", None, None]
