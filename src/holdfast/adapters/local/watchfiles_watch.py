"""Watching with `watchfiles`, on systems without inotify: it reports when to look, never where.

    thread     → waits for the library, notes what was touched and when
    `places`   → always a doubt

Guarantees: those of the port. A change that the library reports counts as activity until a scan
that began after it is kept. An unknown path, or any other failure, counts as activity too, and the
watch is restarted. Not guaranteed: that it reports every change. When its queue overflows, or the
system asks it to rescan, the library says nothing, so a cookie proves nothing. Therefore no save
relies on it, and callers that wait for changes also scan from time to time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from holdfast.ports.system import Clock
from holdfast.ports.watcher import Activity, Doubt, WatchStatus

UNPROVEN = "change notifications of this system are not guaranteed to be complete"
_STEP_MS = 100
_GROUPED_MS = 500
_MOST_TOUCHED = 10_000
_UNKNOWN_NAME = ""
"""Replaces touched paths that are unknown."""

_MOST_FAILURES = 20
"""How many failures in a row, without a report in between."""


class WatchfilesWatch:
    """See `holdfast.ports.watcher.WorkspaceWatch`."""

    def __init__(
        self, library: Any, clock: Clock, workspace: bytes, listener: Callable[[], None] | None
    ) -> None:
        self._library = library
        self._clock = clock
        self._workspace = os.fsdecode(workspace)
        self._listener = listener
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._now = 0
        self._touched: dict[str, int] = {}
        self._first_ns = self._last_ns = clock.monotonic_ns()
        self._off: str | None = None
        self._whole = self._overflows = self._differences = self._failures = 0
        self._thread = threading.Thread(target=self._run, name="holdfast watcher", daemon=True)
        self._thread.start()

    def begin(self) -> int:
        with self._lock:
            return self._now

    def watch(self, path: bytes, fd: int) -> None:
        return None  # the library follows new directories automatically

    def places(self, device: int, inode: int) -> Doubt:
        return Doubt(self._off or UNPROVEN)

    def seen(self, mark: int, *, whole: bool) -> None:
        with self._lock:
            self._whole += 1
            self._touched = {name: when for name, when in self._touched.items() if when > mark}

    def doubt(self, reason: str) -> None:
        return None  # it is never trusted anyway

    def differed(self, detail: str) -> None:
        with self._lock:
            self._differences += 1

    def activity(self) -> Activity:
        with self._lock:
            return Activity(len(self._touched), self._first_ns, self._last_ns)

    def status(self) -> WatchStatus:
        with self._lock:
            return WatchStatus(
                directories=0 if self._off else 1,
                doubt=self._off or UNPROVEN,
                off=self._off is not None,
                unproven=True,
                whole_scans=self._whole,
                overflows=self._overflows,
                differences=self._differences,
            )

    @property
    def is_closed(self) -> bool:
        return self._ended.is_set()

    def close(self) -> None:
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                for names in self._changes():
                    self._failures = 0
                    self._note(names)
            except Exception as error:
                self._fail(error)
                if self._off is not None:
                    return
                self._ended.wait(_STEP_MS / 1000)

    def _changes(self) -> Iterator[set[str]]:
        """The library's reports, until the watch ends."""
        batches = self._library.watch(
            self._workspace,
            watch_filter=None,
            debounce=_GROUPED_MS,
            step=_STEP_MS,
            stop_event=self._ended,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
        for changes in batches:
            yield {name for _, name in changes}

    def _fail(self, error: Exception) -> None:
        """The library cannot report names that are not UTF-8, or what happened meanwhile."""
        with self._lock:
            self._overflows += 1
            self._failures += 1
            if not os.path.isdir(self._workspace) or self._failures > _MOST_FAILURES:
                self._off = f"watching failed: {error}"
            self._touch({_UNKNOWN_NAME})
        self._notify()

    def _note(self, names: set[str]) -> None:
        with self._lock:
            self._touch(names)
        self._notify()

    def _touch(self, names: set[str]) -> None:
        self._now += 1
        self._last_ns = self._clock.monotonic_ns()
        if not self._touched:
            self._first_ns = self._last_ns
        for name in names:
            if name in self._touched or len(self._touched) < _MOST_TOUCHED:
                self._touched[name] = self._now

    def _notify(self) -> None:
        if self._listener is not None and not self._ended.is_set():
            self._listener()


class WatchfilesWatcher:
    """See `holdfast.ports.watcher.Watcher`. ImportError if the library is not installed."""

    def __init__(self, clock: Clock) -> None:
        self._library = import_module("watchfiles")
        self._clock = clock
        self._lock = threading.Lock()
        self._watches: list[WatchfilesWatch] = []

    def open(
        self, workspace: bytes, *, listener: Callable[[], None] | None = None
    ) -> WatchfilesWatch:
        watch = WatchfilesWatch(self._library, self._clock, workspace, listener)
        with self._lock:
            self._watches = [*(each for each in self._watches if not each.is_closed), watch]
        return watch

    def close(self) -> None:
        with self._lock:
            watches, self._watches = self._watches, []
        for watch in watches:
            watch.close()
