"""The packs on disk keep the contracts of objects and of their maintenance."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.ports.objects import ObjectStore, PackMaintenance
from holdfast.testing.object_store_contract import DurableObjectStoreContract
from holdfast.testing.store_contracts import PackMaintenanceContract
from tests.adapters.local.objects.local_stores import open_objects


@pytest.mark.requirement("ST-1")
class TestLocalObjectStore(DurableObjectStoreContract):
    def open_store(self, place: Path) -> ObjectStore:
        return open_objects(place)


@pytest.mark.requirement("ST-5")
class TestLocalPackMaintenance(PackMaintenanceContract[LocalObjectStore]):
    def open_store(self, place: Path) -> LocalObjectStore:
        return open_objects(place)

    def maintenance_of(self, store: LocalObjectStore) -> PackMaintenance:
        return store.maintenance()
