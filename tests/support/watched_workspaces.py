"""A workspace with an engine that watches changes, and a scan from nothing to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.adapters.local.inotify import InotifyWatcher
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.checkpoints import Checkpoint
from holdfast.engine.engine import Engine
from holdfast.ports.watcher import Watcher, WatchStatus, WorkspaceWatch
from holdfast.testing.intercepted_filesystem import Disk
from tests.support.composition import Composed, composed, scan_from_nothing


@dataclass(frozen=True, slots=True)
class Watched:
    """One workspace under one watch."""

    opened: Composed
    watcher: Watcher
    watch: WorkspaceWatch

    @property
    def engine(self) -> Engine:
        return self.opened.engine

    @property
    def status(self) -> WatchStatus:
        return self.watch.status()

    def save(self) -> Checkpoint:
        return self.opened.save()

    def settle(self) -> None:
        """Saves until a save needed the hint alone."""
        for _ in range(3):
            before = self.status.hinted_scans
            self.save()
            if self.status.hinted_scans > before:
                return
        raise AssertionError(f"the watch is not trusted: {self.status}")

    def seen(self) -> tuple[bytes, list[tuple[bytes, str]]]:
        """Tree and report, as the next save would have them."""
        scan = self.engine.scan()
        return scan.tree, [(skip.path, skip.describe()) for skip in scan.skipped]

    def from_nothing(self) -> tuple[bytes, list[tuple[bytes, str]]]:
        """The same, found out without any memory and without a watch."""
        scan = scan_from_nothing(self.engine.vault)
        return scan.tree, [(skip.path, skip.describe()) for skip in scan.skipped]


@contextmanager
def watched(
    workspace: Path, *, fs: Disk | None = None, watcher: Watcher | None = None
) -> Iterator[Watched]:
    watcher = watcher or InotifyWatcher(SystemClock())
    try:
        with composed(workspace, fs=fs) as opened:
            watch = watcher.open(bytes(opened.engine.vault.workspace))
            opened.engine.use_watch(watch)
            yield Watched(opened, watcher, watch)
    finally:
        watcher.close()
