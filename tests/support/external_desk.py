"""External files and their component, driven as checkpoints and restores drive it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.components.external.component import ExternalComponent
from holdfast.domain.paths import is_within
from tests.support.component_runs import ComponentRun
from tests.support.hostile_trees import fill


class NamedPaths:
    """What tools have named, in memory."""

    def __init__(self) -> None:
        self.paths: list[bytes] = []

    def exist(self) -> bool:
        return bool(self.paths)

    def load(self) -> list[bytes]:
        return list(self.paths)

    def add(self, paths: Sequence[bytes]) -> None:
        self.paths += paths

    def drop(self, paths: Sequence[bytes]) -> None:
        self.paths = [n for n in self.paths if not any(is_within(n, path) for path in paths)]


class ExternalDesk:
    """A workspace, a directory beside it, and what was named in that."""

    def __init__(self, root: Path) -> None:
        self.outside = root / "outside"
        self.outside.mkdir()
        self.workspace = root / "shop"
        self.workspace.mkdir()
        self.stores = root / "stores"
        self.stores.mkdir()
        self.names = NamedPaths()
        component = ExternalComponent(self.names, stores=self.stores)
        self.run = ComponentRun(component, self.workspace, time.time_ns())

    def name(self, *paths: str) -> None:
        self.names.add([bytes(self.outside / path) for path in paths])

    def write(self, path: str, data: bytes, mode: int = 0o644) -> Path:
        place = self.outside / path
        fill(place, data)
        place.chmod(mode)
        return place
