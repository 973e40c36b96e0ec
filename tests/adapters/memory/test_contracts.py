"""The memory adapters keep the contracts of their ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.memory.catalog import MemoryCatalog
from holdfast.adapters.memory.objects import MemoryObjectStore, MemoryPackMaintenance
from holdfast.adapters.memory.story import MemoryStory
from holdfast.ports.catalog import Catalog
from holdfast.ports.objects import ObjectStore
from holdfast.ports.pack_maintenance import PackMaintenance
from holdfast.ports.story import Story
from holdfast.testing.catalog_contract import CatalogContract
from holdfast.testing.object_store_contract import ObjectStoreContract
from holdfast.testing.pack_maintenance_contract import PackMaintenanceContract
from holdfast.testing.story_contract import StoryContract


@pytest.mark.requirement("ST-1")
class TestMemoryObjectStore(ObjectStoreContract):
    def open_store(self, place: Path) -> ObjectStore:
        return MemoryObjectStore()


@pytest.mark.requirement("ST-5")
class TestMemoryPackMaintenance(PackMaintenanceContract[MemoryObjectStore]):
    def open_store(self, place: Path) -> MemoryObjectStore:
        return MemoryObjectStore()

    def maintenance_of(self, store: MemoryObjectStore) -> PackMaintenance:
        return MemoryPackMaintenance(store)


@pytest.mark.requirement("CP-8")
class TestMemoryCatalog(CatalogContract):
    def open_catalog(self, place: Path) -> Catalog:
        return MemoryCatalog()


@pytest.mark.requirement("SE-2", "SE-7")
class TestMemoryStory(StoryContract):
    def open_story(self, place: Path) -> Story:
        return MemoryStory()
