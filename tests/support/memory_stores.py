"""Stores in memory in the place of those on disk, for tests that do not look into store files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.adapters.local.encryption.unlock import Unlocked
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.memory.store import MemoryStore, MemoryStoreState
from holdfast.bootstrap import workspace as bootstrap
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.system import Clock


class MemoryStores:
    """The same store each time a workspace is opened, as long as this object lives."""

    def __init__(self) -> None:
        self._states: dict[Path, MemoryStoreState] = {}

    def open(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        workspace: Path,
        clock: Clock,
        *,
        purpose: str,
        unlock: Callable[[StoreLayout], Unlocked] | None = None,
    ) -> MemoryStore:
        state = self._states.setdefault(layout.directory, MemoryStoreState())
        return MemoryStore(state, layout.directory)


def use_memory_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    opener: bootstrap.StoreOpener = MemoryStores().open
    monkeypatch.setattr(bootstrap, "open_store", opener)
