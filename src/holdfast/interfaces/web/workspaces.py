"""The server's open workspaces: its own, and the user's others.

Each is opened when a request first names it, and reopened when its settings or its store change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from holdfast.api.stores import known_workspaces, store_directory
from holdfast.api.workspace import Workspace, open_workspace
from holdfast.domain.errors import NotFound
from holdfast.interfaces.open_cache import OpenCache

_PURPOSE = "holdfast serve"


class ServedWorkspaces:
    """Thread-safe."""

    def __init__(self, own: Path) -> None:
        self.own = own
        self._open: OpenCache[Path, Workspace] = OpenCache()
        self._places: dict[str, Path] = {}
        """Known workspace locations, from the last lookup."""

    def place(self, workspace_id: str | None) -> Path:
        """The location of a workspace; None means the server's own."""
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
        """The workspace, reopened if it is out of date; `create` makes a store for the first
        checkpoint."""
        path = self.place(workspace_id)
        opening = partial(
            open_workspace,
            path,
            create=create,
            exclude_nested_repositories=create,
            purpose=_PURPOSE,
        )
        with self._open.use(path, opening) as workspace:
            yield workspace

    def close(self) -> None:
        self._open.close()
