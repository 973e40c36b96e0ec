"""Where the system offers no watching that can be proven: a watch that says so, every time."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.ports.watcher import Activity, Doubt, WatchStatus


class NoWatch:
    """Always in doubt, so that every scan looks at everything."""

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._scans = 0

    def begin(self) -> int:
        return 0

    def watch(self, path: bytes, fd: int) -> None:
        return None

    def places(self, device: int, inode: int) -> Doubt:
        return Doubt(self._reason)

    def seen(self, mark: int, *, whole: bool) -> None:
        self._scans += 1

    def doubt(self, reason: str) -> None:
        return None

    def differed(self, detail: str) -> None:
        return None

    def activity(self) -> Activity:
        return Activity(0, 0, 0)

    def status(self) -> WatchStatus:
        return WatchStatus(0, self._reason, off=True, whole_scans=self._scans)

    def close(self) -> None:
        return None


class NoWatcher:
    """See `holdfast.ports.watcher.Watcher`."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def open(self, workspace: bytes, *, listener: Callable[[], None] | None = None) -> NoWatch:
        return NoWatch(self._reason)

    def close(self) -> None:
        return None
