"""The workspaces that the daemon keeps open, each used by one request at a time.

A timer thread sleeps until a trigger of some workspace may be due, or an event wakes it, and makes
the automatic checkpoints.
"""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.api.automation import watch_workspace
from holdfast.domain.errors import HoldfastError, Refused, StoreDamaged
from holdfast.interfaces.daemon.instance import log

if TYPE_CHECKING:
    from holdfast.api.automation import ProblemLog, WatchedWorkspace, Watcher

MOST_OPEN = 32
_DEBOUNCE_S = 1.0

T = TypeVar("T")


class _Place:
    """A slot for one workspace; the lock is held while it is opened, used or closed."""

    __slots__ = ("lock", "workspace")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.workspace: WatchedWorkspace | None = None


class Workspaces:
    """Workspaces are opened on first use. If too many are open, the least recently used one is
    closed by `run_in_background`."""

    def __init__(
        self,
        watcher: Watcher,
        environment: Mapping[str, str],
        problems: ProblemLog,
        *,
        run_in_background: Callable[[Callable[[], None]], None],
    ) -> None:
        self._watcher = watcher
        self._environment = environment
        self._problems = problems
        self._run_in_background = run_in_background
        self._changed = threading.Condition()
        self.wakeups = 0
        self._lock = threading.Lock()
        self._places: dict[str, _Place] = {}

    @contextmanager
    def use(self, path: str) -> Iterator[WatchedWorkspace]:
        """The workspace, reopened if it is out of date."""
        key = os.path.realpath(os.path.expanduser(path))
        with self._lock:
            place = self._places.setdefault(key, _Place())
        with place.lock:
            yield self._current(place, key)
        self._enforce_limit()

    def work_in(self, path: str, work: Callable[[WatchedWorkspace], T]) -> T:
        """Do work in a workspace. If its store was repaired or removed while it was open, only the
        work may notice. The workspace is then reopened and the work repeated once."""
        known = {str(workspace.workspace) for workspace in self.all()}
        try:
            return self._work_once(path, work)
        except (Refused, StoreDamaged):
            if os.path.realpath(path) not in known:
                raise
        self.discard(path)
        return self._work_once(path, work)

    def _work_once(self, path: str, work: Callable[[WatchedWorkspace], T]) -> T:
        with self.use(path) as workspace:
            answer = work(workspace)
            self.wake_timer()
            return answer

    def discard(self, path: str) -> None:
        """Close the workspace, because its cached data is invalid."""
        with self._lock:
            place = self._places.get(os.path.realpath(os.path.expanduser(path)))
        if place is not None:
            with place.lock:
                self._close(place)

    def _current(self, place: _Place, key: str) -> WatchedWorkspace:
        kept = place.workspace
        if kept is not None:
            try:
                if kept.is_current():
                    return kept
            except BaseException:
                self._close(place)
                raise
            self._close(place)
        place.workspace = watch_workspace(
            Path(key), self._watcher, self._environment, listener=self.wake_timer
        )
        if kept is not None:
            place.workspace.take_over(kept)
        return place.workspace

    def all(self) -> list[WatchedWorkspace]:
        """The open workspaces, without waiting for any."""
        with self._lock:
            return [p.workspace for p in self._places.values() if p.workspace is not None]

    @contextmanager
    def if_free(self, workspace: WatchedWorkspace) -> Iterator[bool]:
        """Use an open workspace, unless another thread uses it or has closed it."""
        with self._lock:
            place = next((p for p in self._places.values() if p.workspace is workspace), None)
        if place is None or not place.lock.acquire(blocking=False):
            yield False
            return
        try:
            yield place.workspace is workspace
        finally:
            place.lock.release()

    def _enforce_limit(self) -> None:
        """In the background, so that no client waits while unsaved changes are saved."""
        if self._oldest_beyond_limit() is not None:
            self._run_in_background(self._close_oldest)

    def _oldest_beyond_limit(self) -> _Place | None:
        with self._lock:
            kept = [p for p in self._places.values() if p.workspace is not None]
        if len(kept) <= MOST_OPEN:
            return None
        return min(kept, key=lambda p: p.workspace.last_used_ns if p.workspace else 0)

    def _close_oldest(self) -> None:
        oldest = self._oldest_beyond_limit()  # another thread may have closed some
        if oldest is not None and oldest.lock.acquire(blocking=False):
            try:
                self._finish_and_close(oldest)
            finally:
                oldest.lock.release()

    @staticmethod
    def _close(place: _Place) -> None:
        workspace, place.workspace = place.workspace, None
        if workspace is not None:
            # The next request reports a damaged or missing store.
            with contextlib.suppress(HoldfastError, OSError):
                workspace.close()

    def wake_timer(self) -> None:
        """Make the timer recompute when triggers are due."""
        with self._changed:
            self._changed.notify()

    def watch_triggers(self, ended: threading.Event) -> None:
        """Make due checkpoints until the daemon ends."""
        while not ended.is_set():
            with self._changed:
                self._changed.wait(self.until_due_s())
            self.wakeups += 1
            for workspace in self.all():
                if not ended.is_set():
                    self._consider(workspace)
            ended.wait(_DEBOUNCE_S)

    def until_due_s(self) -> float | None:
        local = datetime.now().astimezone()
        waits = [workspace.wait_ns(local) for workspace in self.all()]
        known = [wait for wait in waits if wait is not None]
        return min(known) / 1e9 if known else None

    def _consider(self, workspace: WatchedWorkspace) -> None:
        with self.if_free(workspace) as free:
            if not free:
                return
            try:
                workspace.consider(datetime.now().astimezone())
            except HoldfastError as error:
                self._note_missed(workspace, error)
                if not os.path.lexists(workspace.workspace):
                    self._forget(workspace)
            except Exception:
                log(traceback.format_exc())

    def _forget(self, workspace: WatchedWorkspace) -> None:
        """Close a workspace whose directory is gone, so that nothing is tried there again. If the
        directory comes back, the next request opens it. Called with the slot's lock held."""
        with self._lock:
            places = [place for place in self._places.values() if place.workspace is workspace]
        for place in places:
            self._close(place)

    def _finish_and_close(self, place: _Place) -> None:
        """Save unsaved changes first, because the workspace is no longer watched. Called with the
        slot's lock held."""
        if place.workspace is not None:
            try:
                place.workspace.finish()
            except Exception as error:  # continue with the others
                self._note_missed(place.workspace, error)
        self._close(place)

    def _note_missed(self, workspace: WatchedWorkspace, error: Exception) -> None:
        """Record it in the log and for `status`, because no request is waiting."""
        log(f"{workspace.workspace}: no automatic checkpoint: {error}")
        self._problems.note_missed(workspace.workspace, workspace.session or "", error)

    def close(self) -> None:
        with self._lock:
            places = list(self._places.values())
        for place in places:
            with place.lock:
                self._finish_and_close(place)
        self._watcher.close()
