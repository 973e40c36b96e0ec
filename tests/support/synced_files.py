"""Which changed files and directories this process has synced, as a power cut would find them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest


class SyncedFiles:
    """Watches `os.fsync` of this process. `trees` are watched with everything below, `places`
    alone."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, trees: Sequence[Path], places: Sequence[Path]
    ) -> None:
        self._trees, self._places = trees, places
        self._synced: dict[tuple[int, int], int] = {}
        self._before: dict[Path, int] = {}
        real = os.fsync

        def fsync(fd: int) -> None:
            real(fd)
            status = os.fstat(fd)
            self._synced[status.st_dev, status.st_ino] = status.st_mtime_ns

        monkeypatch.setattr(os, "fsync", fsync)

    def begin(self) -> None:
        """From now on, changes have to be synced."""
        self._before = {path: status.st_ctime_ns for path, status in self._look()}

    def unsynced(self) -> list[str]:
        """What changed since the beginning, and was not synced with its present content."""
        return sorted(
            str(path)
            for path, status in self._look()
            if self._before.get(path) != status.st_ctime_ns
            and self._synced.get((status.st_dev, status.st_ino)) != status.st_mtime_ns
        )

    def _look(self) -> Iterator[tuple[Path, os.stat_result]]:
        below = (path for tree in self._trees for path in (tree, *tree.rglob("*")))
        for path in (*self._places, *below):
            if os.path.lexists(path) and not path.is_symlink():
                yield path, path.stat()
