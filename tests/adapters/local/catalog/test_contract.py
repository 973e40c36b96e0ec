"""The catalog on disk keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.ports.catalog import Catalog
from holdfast.testing.catalog_contract import DurableCatalogContract


@pytest.mark.requirement("CP-8")
class TestSqliteCatalog(DurableCatalogContract):
    def open_catalog(self, place: Path) -> Catalog:
        catalog = SqliteCatalog(place / "catalog.db")
        catalog.migrate()
        return catalog
