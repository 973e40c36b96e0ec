"""The workspaces that a server serves, and its open sessions.

A server serves only the workspaces it was started with. A path in a request chooses among them.
Sessions are opened on first use and kept open, with their previews.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UsageError
from holdfast.domain.ids import SessionId
from holdfast.interfaces.open_cache import OpenCache
from holdfast.interfaces.tools.handlers import ToolHandlers

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace


class _OpenHandlers(ToolHandlers):
    """The tools of a session that is kept open."""

    def is_current(self) -> bool:
        return self.session.opened.is_current()

    def close(self) -> None:
        self.session.close()


def _require_saved(workspace: Path, directory: Path) -> None:
    """A directory inside means its workspace, unless ignore rules exclude the directory."""
    from holdfast.api.stores import is_left_out

    if is_left_out(workspace, directory):
        raise NotFound(
            f"ignore rules of {workspace} exclude {directory}, so nothing in it is saved there",
            hint=f"serve it separately: holdfast mcp {shlex.quote(str(directory))}",
        )


class ServedSessions:
    """Opens the sessions that requests name; thread-safe."""

    def __init__(
        self,
        workspaces: Sequence[Path],
        session_id: str | None,
        fresh_id: Callable[[Workspace], SessionId],
    ) -> None:
        self.workspaces = [path.expanduser().resolve() for path in workspaces]
        self._session_id = session_id
        self._fresh_id = fresh_id
        self._open: OpenCache[tuple[Path, str], _OpenHandlers] = OpenCache()
        self._creating = {path: threading.Lock() for path in self.workspaces}
        self.on_open: Callable[[], None] = lambda: None
        """Called when a session was opened, which may have created its store."""

    @contextmanager
    def handlers(
        self, workspace: object, session_id: object, *, create: bool = False
    ) -> Iterator[ToolHandlers]:
        """The tools of a session, by default of the default session. A named session must exist,
        unless the request may `create` it."""
        directory = self._workspace(workspace)
        name = self.session_id(directory, session_id)
        with self._open.use(
            (directory, name), lambda: self._open_session(directory, name)
        ) as handlers:
            if session_id and not create:
                session = handlers.session
                session.opened.sessions.require(SessionId(session.session_id))
            yield handlers

    def without_store(self, workspace: object, session_id: object) -> tuple[Path, str] | None:
        """The named workspace and session, if the workspace has no store."""
        from holdfast.api.stores import store_directory

        directory = self._workspace(workspace)
        is_open = any(place == directory for place, _ in self._open.open_keys())
        if is_open or store_directory(directory) is not None:
            return None
        return directory, session_id if isinstance(session_id, str) else self._session_id or ""

    def close(self) -> None:
        self._open.close()

    def _workspace(self, wanted: object) -> Path:
        if wanted is None or wanted == "":
            return self.workspaces[0]
        served = ", ".join(str(path) for path in self.workspaces)
        if not isinstance(wanted, str) or "\0" in wanted:
            raise UsageError(
                "workspace is not a path", hint=f"leave it out, or use one of these: {served}"
            )
        try:
            path = Path(wanted).expanduser().resolve()
        except (OSError, RuntimeError):  # too long, a loop, or an unknown user
            path = None
        around = [] if path is None else [path, *path.parents]  # the nearest first
        nearest = next((one for one in around if one in self.workspaces), None)
        if nearest is not None and path is not None:
            if nearest != path:
                _require_saved(nearest, path)
            return nearest
        raise NotFound(
            f"the workspace {ascii(wanted)[:200]} is not served here",
            hint=f"leave it out, or use one of these: {served}",
        )

    def session_id(self, directory: Path, wanted: object = None) -> str:
        """The wanted session, or the one for calls that name none."""
        if isinstance(wanted, str) and wanted:
            return wanted
        if wanted is not None and wanted != "":
            raise UsageError("session_id is not a string", hint="leave it out for the default one")
        if self._session_id is not None:
            return self._session_id
        from holdfast.api.workspace import open_workspace

        self._ensure_store(directory)
        with open_workspace(directory, create=True) as opened:
            return opened.sessions.ensure_current(lambda: self._fresh_id(opened))

    def _open_session(self, directory: Path, name: str) -> _OpenHandlers:
        # Late: listing the tools needs no engine.
        from holdfast.api.session import SessionCheckpointer

        self._ensure_store(directory)
        opened = _OpenHandlers(SessionCheckpointer(directory, name))
        self.on_open()
        return opened

    def _ensure_store(self, directory: Path) -> None:
        """Create it with its first settings, before other threads can open it."""
        from holdfast.api.stores import store_directory
        from holdfast.api.workspace import open_workspace

        with self._creating[directory]:
            if store_directory(directory) is None:
                open_workspace(directory, create=True, exclude_nested_repositories=True).close()
