"""Where repositories inside the workspace lie, in one small file of the store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.adapters.local.store_place import StorePlace
from holdfast.domain.paths import from_text, to_text


class StoredNestedRepositories:
    """See `holdfast.ports.nested_repositories.NestedRepositories`."""

    def __init__(self, place: StorePlace) -> None:
        self._place = place

    def load(self) -> list[bytes]:
        data = self._place.read_nested_repositories()
        try:
            return [] if data is None else [from_text(text) for text in json.loads(data)]
        except (ValueError, TypeError, AttributeError, RecursionError):
            return []  # at worst a reference stays that keeps some commits alive

    def add(self, git_directories: Sequence[bytes]) -> None:
        known = self.load()
        all_of_them = sorted({*known, *git_directories})
        if all_of_them != known:
            data = json.dumps([to_text(path) for path in all_of_them])
            self._place.write_nested_repositories(data.encode())
