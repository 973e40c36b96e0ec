"""Both object stores keep the one contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.memory.objects import MemoryObjectStore
from holdfast.ports.objects import ObjectStore
from holdfast.testing.object_store_contract import DurableObjectStoreContract, ObjectStoreContract
from tests.adapters.local.objects.local_stores import open_objects


@pytest.mark.requirement("ST-1")
class TestMemoryObjectStore(ObjectStoreContract):
    def open_store(self, place: Path) -> ObjectStore:
        return MemoryObjectStore()


@pytest.mark.requirement("ST-1")
class TestLocalObjectStore(DurableObjectStoreContract):
    def open_store(self, place: Path) -> ObjectStore:
        return open_objects(place)
