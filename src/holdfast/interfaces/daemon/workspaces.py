"""The workspaces that the daemon keeps open, each used by one request at a time."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.api.automation import watch_workspace
from holdfast.domain.errors import HoldfastError, Refused, StoreDamaged

if TYPE_CHECKING:
    from holdfast.api.automation import WatchedWorkspace, Watcher

MOST_OPEN = 32

T = TypeVar("T")


class _Place:
    """Room for one workspace; the lock is held while it is opened, used or closed."""

    __slots__ = ("lock", "workspace")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.workspace: WatchedWorkspace | None = None


class Workspaces:
    """Opened when first asked for; the one not used for longest goes when there are too many.
    `last_work` is called with it before, in a thread of `later`."""

    def __init__(
        self,
        watcher: Watcher,
        environment: Mapping[str, str],
        listener: Callable[[], None],
        *,
        last_work: Callable[[WatchedWorkspace], None],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self._watcher = watcher
        self._environment = environment
        self._listener = listener
        self._last_work = last_work
        self._later = later
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

    def work_in(self, path: str, work: Callable[[WatchedWorkspace], T]) -> T:
        """Do the work in a workspace. One that was kept open may have become useless in a way that
        only the work itself finds out, as when its store was repaired or removed: then the work is
        done once more with it opened afresh."""
        known = {str(workspace.workspace) for workspace in self.all()}
        try:
            with self.use(path) as workspace:
                answer = work(workspace)
                self._listener()
                return answer
        except (Refused, StoreDamaged):
            if os.path.realpath(path) not in known:
                raise
        self.discard(path)
        with self.use(path) as workspace:
            return work(workspace)

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
        place.workspace = watch_workspace(
            Path(key), self._watcher, self._environment, listener=self._listener
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
        """Not while somebody waits for an answer: what is not saved there may be much."""
        if self._oldest_of_too_many() is not None:
            self._later(self._let_the_oldest_go)

    def _oldest_of_too_many(self) -> _Place | None:
        with self._lock:
            kept = [p for p in self._places.values() if p.workspace is not None]
        if len(kept) <= MOST_OPEN:
            return None
        return min(kept, key=lambda p: p.workspace.last_used_ns if p.workspace else 0)

    def _let_the_oldest_go(self) -> None:
        oldest = self._oldest_of_too_many()  # others may have made room meanwhile
        if oldest is not None and oldest.lock.acquire(blocking=False):
            try:
                if oldest.workspace is not None:
                    self._last_work(oldest.workspace)
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
