"""The workspaces that the daemon keeps open, each used by one request at a time."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.domain.errors import HoldfastError
from holdfast.ports.watcher import Watcher
from holdfast.watching import WatchedWorkspace

MOST_OPEN = 32


class _Place:
    """Room for one workspace; the lock is held while it is opened, used or closed."""

    __slots__ = ("lock", "workspace")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.workspace: WatchedWorkspace | None = None


class Workspaces:
    """Opened when first asked for; the one not used for longest goes when there are too many."""

    def __init__(
        self, watcher: Watcher, environment: Mapping[str, str], listener: Callable[[], None]
    ) -> None:
        self._watcher = watcher
        self._environment = environment
        self._listener = listener
        self._lock = threading.Lock()
        self._places: dict[str, _Place] = {}

    @contextmanager
    def use(self, path: str) -> Iterator[WatchedWorkspace]:
        """The workspace, as it would be if it were opened now."""
        key = os.path.realpath(os.path.expanduser(path))
        with self._lock:
            place = self._places.setdefault(key, _Place())
        with place.lock:
            yield self._current(place, key)
        self._make_room()

    def discard(self, path: str) -> None:
        """What is kept of it is of no use any more."""
        with self._lock:
            place = self._places.get(os.path.realpath(os.path.expanduser(path)))
        if place is not None:
            with place.lock:
                self._close(place)

    def _current(self, place: _Place, key: str) -> WatchedWorkspace:
        kept = place.workspace
        session = None if kept is None else kept.session
        if kept is not None:
            try:
                if kept.is_current():
                    return kept
            except BaseException:
                self._close(place)
                raise
            self._close(place)
        place.workspace = WatchedWorkspace(
            Path(key), self._watcher, environment=self._environment, listener=self._listener
        )
        place.workspace.session = session
        return place.workspace

    def all(self) -> list[WatchedWorkspace]:
        """Those that are open, without waiting for any."""
        with self._lock:
            return [p.workspace for p in self._places.values() if p.workspace is not None]

    @contextmanager
    def if_free(self, workspace: WatchedWorkspace) -> Iterator[bool]:
        """Use one of `all` unless somebody else does, or it is closed meanwhile."""
        with self._lock:
            place = next((p for p in self._places.values() if p.workspace is workspace), None)
        if place is None or not place.lock.acquire(blocking=False):
            yield False
            return
        try:
            yield place.workspace is workspace
        finally:
            place.lock.release()

    def _make_room(self) -> None:
        with self._lock:
            kept = [p for p in self._places.values() if p.workspace is not None]
            if len(kept) <= MOST_OPEN:
                return
            oldest = min(kept, key=lambda p: p.workspace.last_used_ns if p.workspace else 0)
        if oldest.lock.acquire(blocking=False):
            try:
                self._close(oldest)
            finally:
                oldest.lock.release()

    @staticmethod
    def _close(place: _Place) -> None:
        workspace, place.workspace = place.workspace, None
        if workspace is not None:
            # A store that is damaged or gone is the next request's to tell.
            with contextlib.suppress(HoldfastError, OSError):
                workspace.close()

    def close(self) -> None:
        with self._lock:
            places = list(self._places.values())
        for place in places:
            with place.lock:
                self._close(place)
        self._watcher.close()
