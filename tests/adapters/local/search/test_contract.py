"""The search index on disk keeps the contract, sealed, and where the store takes no writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.encryption.cipher import Cipher
from holdfast.adapters.local.search.sqlite import ReadOnlySearchIndex, SqliteSearchIndex
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.testing.derived_contracts import SearchIndexContract

pytestmark = pytest.mark.requirement("SE-8")


def _lock(directory: Path) -> StoreLock:
    return StoreLock(directory / "search.lock", SystemClock(), purpose="test")


class TestSqliteSearchIndex(SearchIndexContract):
    def open_index(self, directory: Path) -> SqliteSearchIndex:
        return SqliteSearchIndex(directory / "search.db", _lock(directory))


class TestSealedSearchIndex(SearchIndexContract):
    def open_index(self, directory: Path) -> SqliteSearchIndex:
        return SqliteSearchIndex(directory / "search.db", _lock(directory), Cipher(bytes(32)))


class TestReadOnlySearchIndex(SearchIndexContract):
    def open_index(self, directory: Path) -> SqliteSearchIndex:
        return ReadOnlySearchIndex(directory / "search.db", _lock(directory))
