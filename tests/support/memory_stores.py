"""Stores in memory in the place of those on disk, for tests that do not look into store files."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.memory.store import MemoryStore, MemoryStoreState
from holdfast.bootstrap import workspace as bootstrap
from tests.support import composition


class MemoryStores:
    """The same store each time a workspace is opened, as long as this object lives."""

    def __init__(self) -> None:
        self._states: dict[Path, MemoryStoreState] = {}

    def open(self, _fs: object, layout: StoreLayout, *_: object, **__: object) -> MemoryStore:
        state = self._states.setdefault(layout.directory, MemoryStoreState())
        return MemoryStore(state, layout.directory)


def use_memory_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    for module in (bootstrap, composition):
        monkeypatch.setattr(module, "LocalStore", stores.open)
