"""The workspaces that a server serves, and the sessions that it has open.

A server serves the workspaces it was started with and no others, whatever a client asks for: a path
in a request chooses among them. Sessions are opened when first used and kept, with their open
previews, up to a bound; the one unused for longest is closed, and so are those whose settings have
changed or whose store was repaired.
"""

from __future__ import annotations

import shlex
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UsageError
from holdfast.domain.ids import SessionId
from holdfast.interfaces.tools.handlers import ToolHandlers

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace

_MOST_OPEN = 16


@dataclass(slots=True)
class _Open:
    handlers: ToolHandlers
    users: int = 0
    stale: bool = False


def _require_saved(workspace: Path, directory: Path) -> None:
    """A directory below means the workspace, unless nothing of it is saved there."""
    from holdfast.api.stores import is_left_out

    if is_left_out(workspace, directory):
        raise NotFound(
            f"ignore rules of {workspace} exclude {directory}, so nothing in it is saved there",
            hint=f"serve it separately: holdfast mcp {shlex.quote(str(directory))}",
        )


class ServedSessions:
    """Opens what a request names; safe to use from many threads."""

    def __init__(
        self,
        workspaces: Sequence[Path],
        session_id: str | None,
        fresh_id: Callable[[Workspace], SessionId],
    ) -> None:
        self._workspaces = [path.expanduser().resolve() for path in workspaces]
        self._session_id = session_id
        self._fresh_id = fresh_id
        self._open: OrderedDict[tuple[Path, str], _Open] = OrderedDict()
        self._lock = threading.Lock()
        self.on_open: Callable[[], None] = lambda: None
        """Called when a session was opened, which may have created its store."""

    def default_session(self, directory: Path) -> str:
        """The session of calls that name none."""
        return self._session(directory, None)

    @property
    def workspaces(self) -> list[Path]:
        return list(self._workspaces)

    @contextmanager
    def handlers(
        self, workspace: object, session_id: object, *, create: bool = False
    ) -> Iterator[ToolHandlers]:
        """The tools of a session; of the default ones where nothing is named. A session that a
        request names has to exist, unless the request may `create` it."""
        directory = self._workspace(workspace)
        name = self._session(directory, session_id)
        used = self._borrow(directory, name)
        try:
            if session_id and not create:
                session = used.handlers.session
                session.opened.sessions.require(SessionId(session.session_id))
            yield used.handlers
        finally:
            self._give_back(used)

    def without_store(self, workspace: object, session_id: object) -> tuple[Path, str] | None:
        """The workspace and the session that are named, if the workspace has no store."""
        from holdfast.api.stores import store_directory

        directory = self._workspace(workspace)
        with self._lock:
            is_open = any(place == directory for place, _ in self._open)
        if is_open or store_directory(directory) is not None:
            return None
        return directory, session_id if isinstance(session_id, str) else self._session_id or ""

    def close(self) -> None:
        with self._lock:
            for key in list(self._open):
                self._drop(key)

    def _workspace(self, wanted: object) -> Path:
        if wanted is None or wanted == "":
            return self._workspaces[0]
        served = ", ".join(str(path) for path in self._workspaces)
        if not isinstance(wanted, str) or "\0" in wanted:
            raise UsageError(
                "workspace is not a path", hint=f"leave it out, or use one of these: {served}"
            )
        try:
            path = Path(wanted).expanduser().resolve()
        except (OSError, RuntimeError):  # too long, in a circle, of an unknown user
            path = None
        around = [] if path is None else [path, *path.parents]  # the nearest first
        nearest = next((one for one in around if one in self._workspaces), None)
        if nearest is not None and path is not None:
            if nearest != path:
                _require_saved(nearest, path)
            return nearest
        raise NotFound(
            f"the workspace {ascii(wanted)[:200]} is not served here",
            hint=f"leave it out, or use one of these: {served}",
        )

    def _session(self, directory: Path, wanted: object) -> str:
        if isinstance(wanted, str) and wanted:
            return wanted
        if wanted is not None and wanted != "":
            raise UsageError("session_id is not a string", hint="leave it out for the default one")
        if self._session_id is not None:
            return self._session_id
        from holdfast.api.workspace import open_workspace

        with open_workspace(directory, create=True, spare_repositories=True) as opened:
            return opened.sessions.ensure_current(lambda: self._fresh_id(opened))

    def _borrow(self, directory: Path, name: str) -> _Open:
        key = (directory, name)
        with self._lock:
            known = self._open.get(key)
            if known is not None:
                self._used(key, known)
        if known is not None:
            if _is_current(known):
                return known
            self._replace(key, known)
        # Late: a server that is asked what it offers needs no engine for the answer.
        from holdfast.api.session import SessionCheckpointer
        from holdfast.api.stores import store_directory
        from holdfast.api.workspace import open_workspace

        # Opening can wait for other processes, and other calls should not wait for that.
        if store_directory(directory) is None:
            open_workspace(directory, create=True, spare_repositories=True).close()
        opened = _Open(ToolHandlers(SessionCheckpointer(directory, name)))
        with self._lock:
            known = self._open.setdefault(key, opened)
            self._used(key, known)
        if known is not opened:
            opened.handlers.session.close()
        self.on_open()
        return known

    def _replace(self, key: tuple[Path, str], outdated: _Open) -> None:
        """New calls do not get it."""
        with self._lock:
            if self._open.get(key) is outdated:
                self._drop(key)
        self._give_back(outdated)

    def _used(self, key: tuple[Path, str], known: _Open) -> None:
        self._open.move_to_end(key)
        known.users += 1
        for oldest in list(self._open)[: max(len(self._open) - _MOST_OPEN, 0)]:
            self._drop(oldest)

    def _give_back(self, used: _Open) -> None:
        with self._lock:
            used.users -= 1
            if used.stale and used.users == 0:
                used.handlers.session.close()

    def _drop(self, key: tuple[Path, str]) -> None:
        """Closed now, or when the last call that uses it has ended."""
        dropped = self._open.pop(key)
        dropped.stale = True
        if dropped.users == 0:
            dropped.handlers.session.close()


def _is_current(known: _Open) -> bool:
    """Whether it has the current store and settings, no matter who changed them."""
    try:
        return known.handlers.session.opened.is_current()
    except Exception:  # opening it again tells what is wrong
        return False
