"""The stat cache in memory: see `holdfast.ports.stat_cache`."""

from __future__ import annotations

from collections.abc import Iterable


class MemoryStatCache:
    def __init__(self) -> None:
        self._generation: str | None = None
        self._entries: dict[bytes, bytes] = {}

    def load(self, generation: str) -> dict[bytes, bytes]:
        return dict(self._entries) if generation == self._generation else {}

    def update(self, generation: str, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        if generation != self._generation:
            self._generation, self._entries = generation, {}
        for path, entry in changed:
            if entry is not None:
                self._entries[path] = entry
                continue
            below = path + b"/" if path else b""
            for known in [k for k in self._entries if k == path or k.startswith(below)]:
                del self._entries[known]

    def erase(self) -> None:
        self._generation, self._entries = None, {}

    def close(self) -> None:
        return None
