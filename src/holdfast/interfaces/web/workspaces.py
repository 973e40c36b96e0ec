"""The workspaces that the server has open: its own, and every other one of the user.

Each is opened when a request first names it, shared by all requests, and opened again when its
settings or its store have changed. The one unused for longest is closed when there are too many.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.api.stores import known_workspaces, store_directory
from holdfast.api.workspace import Workspace, open_workspace
from holdfast.domain.errors import HoldfastError, NotFound

_MOST_OPEN = 16
_PURPOSE = "holdfast serve"


@dataclass(slots=True)
class _Open:
    workspace: Workspace
    users: int = 0
    stale: bool = False


class ServedWorkspaces:
    """Safe to use from many threads."""

    def __init__(self, own: Path) -> None:
        self.own = own
        self._open: OrderedDict[Path, _Open] = OrderedDict()
        self._lock = threading.Lock()
        self._places: dict[str, Path] = {}
        """Where workspaces were when they were last looked for."""

    def place(self, workspace_id: str | None) -> Path:
        """Where a workspace is; None means the one that the server was started in."""
        if workspace_id is None:
            return self.own
        remembered = self._places.get(workspace_id)
        if remembered is not None:
            store = store_directory(remembered)
            if store is not None and store.name == workspace_id:
                return remembered
        for known in known_workspaces():
            if known.id == workspace_id:
                self._places[workspace_id] = known.path
                return known.path
        raise NotFound(
            f"unknown workspace: {workspace_id!r}", hint="list them: GET /api/workspaces"
        )

    @contextmanager
    def use(self, workspace_id: str | None, *, create: bool = False) -> Iterator[Workspace]:
        """The workspace as it would be if it were opened now; `create` makes a store for the
        first checkpoint."""
        used = self._borrow(self.place(workspace_id), create)
        try:
            yield used.workspace
        finally:
            self._give_back(used)

    def close(self) -> None:
        with self._lock:
            for path in list(self._open):
                self._drop(path)

    def _borrow(self, path: Path, create: bool) -> _Open:
        with self._lock:
            known = self._open.get(path)
            if known is not None:
                self._used(path, known)
        if known is not None:
            if _is_current(known.workspace):
                return known
            with self._lock:
                if self._open.get(path) is known:
                    self._drop(path)
            self._give_back(known)
        # Opening can wait for other processes, and other requests should not wait for that.
        opened = _Open(
            open_workspace(path, create=create, spare_repositories=create, purpose=_PURPOSE)
        )
        with self._lock:
            known = self._open.setdefault(path, opened)
            self._used(path, known)
        if known is not opened:
            opened.workspace.close()
        return known

    def _used(self, path: Path, known: _Open) -> None:
        self._open.move_to_end(path)
        known.users += 1
        for oldest in list(self._open)[: max(len(self._open) - _MOST_OPEN, 0)]:
            self._drop(oldest)

    def _give_back(self, used: _Open) -> None:
        with self._lock:
            used.users -= 1
            if used.stale and used.users == 0:
                self._close(used)

    def _drop(self, path: Path) -> None:
        """Closed now, or when the last request that uses it has ended."""
        dropped = self._open.pop(path)
        dropped.stale = True
        if dropped.users == 0:
            self._close(dropped)

    @staticmethod
    def _close(one: _Open) -> None:
        # A store that is damaged or gone is the next request's to report.
        with suppress(HoldfastError, OSError):
            one.workspace.close()


def _is_current(workspace: Workspace) -> bool:
    try:
        return workspace.is_current()
    except Exception:  # opening it again reports what is wrong
        return False
