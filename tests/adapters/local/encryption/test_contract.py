"""The encrypted catalog, object store and stat cache keep the contracts of the plain ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.encryption.cipher import StoreKeys
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.adapters.local.stat_cache import SqliteStatCache
from holdfast.ports.catalog import Catalog
from holdfast.ports.objects import ObjectStore
from holdfast.testing.catalog_contract import DurableCatalogContract
from holdfast.testing.object_store_contract import DurableObjectStoreContract

KEYS = StoreKeys(bytes(range(32)))


@pytest.mark.requirement("ST-6")
class TestEncryptedObjectStore(DurableObjectStoreContract):
    def open_store(self, place: Path) -> ObjectStore:
        (place / "packs").mkdir(parents=True, exist_ok=True)
        store = LocalObjectStore(LocalFilesystem(), place, KEYS)
        store.catch_up()
        return store


@pytest.mark.requirement("ST-6")
class TestEncryptedCatalog(DurableCatalogContract):
    def open_catalog(self, place: Path) -> Catalog:
        catalog = SqliteCatalog(place / "catalog.db", KEYS.cipher("catalog"))
        catalog.migrate()
        return catalog


@pytest.mark.requirement("ST-6")
def test_a_stat_cache_remembers_and_one_that_was_damaged_is_restarted(tmp_path: Path) -> None:
    path = tmp_path / "stat-cache.db"
    cache = SqliteStatCache(path, KEYS.cipher("stat cache"))
    cache.update("g", [(b"confidential-directory", b"entry")])
    cache.close()
    cache = SqliteStatCache(path, KEYS.cipher("stat cache"))
    assert cache.load("g") == {b"confidential-directory": b"entry"}
    cache.close()
    for file in tmp_path.iterdir():
        assert b"confidential-directory" not in file.read_bytes()
    for file in tmp_path.glob("*.db-*"):
        file.unlink()
    path.write_bytes(b"\xff" * 8192)
    cache = SqliteStatCache(path, KEYS.cipher("stat cache"))
    assert cache.load("g") == {}
    cache.update("g", [(b"again", b"entry")])
    assert cache.load("g") == {b"again": b"entry"}
    cache.close()
