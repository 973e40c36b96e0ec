"""Both catalogs keep the one contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.memory.catalog import MemoryCatalog
from holdfast.ports.catalog import Catalog
from holdfast.testing.catalog_contract import CatalogContract, DurableCatalogContract


@pytest.mark.requirement("CP-8")
class TestMemoryCatalog(CatalogContract):
    def open_catalog(self, place: Path) -> Catalog:
        return MemoryCatalog()


@pytest.mark.requirement("CP-8")
class TestSqliteCatalog(DurableCatalogContract):
    def open_catalog(self, place: Path) -> Catalog:
        catalog = SqliteCatalog(place / "catalog.db")
        catalog.migrate()
        return catalog
