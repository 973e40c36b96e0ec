"""The names of external files, in one small file of the store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.adapters.local.store_place import StorePlace
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.external_paths import MOST_NAMES
from holdfast.domain.paths import from_text, is_within, to_text


class StoredExternalPaths:
    """See `holdfast.ports.external_paths.ExternalPaths`."""

    def __init__(self, place: StorePlace) -> None:
        self._place = place

    def exist(self) -> bool:
        return self._place.has_external_paths()

    def load(self) -> list[bytes]:
        data = self._place.read_external_paths()
        if data is None:
            return []
        try:
            paths = [from_text(text) for text in json.loads(data)]
            if not all(path.startswith(b"/") for path in paths):
                raise ValueError("a path is not absolute")
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise StoreDamaged(
                "the names of files outside the workspace are unusable",
                hint="remove the file external-paths from the store; tools will name them again",
            ) from None
        return paths

    def add(self, paths: Sequence[bytes]) -> None:
        try:
            known = self.load()
        except StoreDamaged:
            known = []
        older = [path for path in known if path not in paths]
        self._keep([*older, *dict.fromkeys(paths)], known)

    def drop(self, paths: Sequence[bytes]) -> None:
        known = self.load()
        self._keep([n for n in known if not any(is_within(n, path) for path in paths)], known)

    def _keep(self, names: list[bytes], known: list[bytes]) -> None:
        if names != known:
            data = json.dumps([to_text(path) for path in names[-MOST_NAMES:]])
            self._place.write_external_paths(data.encode())
