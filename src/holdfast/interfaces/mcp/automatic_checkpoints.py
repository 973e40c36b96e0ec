"""Automatic checkpoints of the served workspaces, without hooks and without a daemon.

    a thread sleeps until a trigger may be due, files change, or a session is opened
    → checkpoints by changed files, by time, at the end of the day and after merges, in the session
    that calls use
    → if one fails: tried again after a minute, with all changes until then

Watching begins about a second after the server starts. A project without a store then gets one,
with an initial checkpoint, unless every trigger is off. A directory that is not a project is left
alone until a checkpoint is made in it, because agents start servers anywhere. If another process
watches for the same session, the first one saves, and the other finds nothing new.

Not guaranteed: a checkpoint when the server exits. Clients may kill it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import SessionId
from holdfast.interfaces.mcp.sessions import ServedSessions

if TYPE_CHECKING:
    from holdfast.api.automation import WatchedWorkspace, Watcher

_DEBOUNCE_S = 1.0
_RETRY_S = 60.0

NoteMissed = Callable[[Path, str, Exception], None]


class AutomaticCheckpoints:
    """Watches the served workspaces until `end`."""

    def __init__(
        self,
        sessions: ServedSessions,
        environment: Mapping[str, str],
        local_time: Callable[[], datetime],
        note_missed: NoteMissed,
    ) -> None:
        """`note_missed` is called if a due checkpoint could not be made."""
        self._sessions = sessions
        self._environment = environment
        self._local_time = local_time
        self._note_missed = note_missed
        self._watched: dict[Path, WatchedWorkspace] = {}
        self._failed: dict[Path, WatchedWorkspace | None] = {}
        self._happened = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="automatic", daemon=True)
        sessions.on_open = self._happened.set

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._happened.set()
        self._thread.join()

    def _run(self) -> None:
        self._ended.wait(_DEBOUNCE_S)  # the first answer has priority
        from holdfast.api.automation import open_watcher

        watcher = open_watcher()
        try:
            while not self._ended.is_set():
                self._happened.clear()
                for path in self._sessions.workspaces:
                    self._save_if_due(path, watcher)
                self._happened.wait(self._until_due_s())
                self._ended.wait(_DEBOUNCE_S)
        finally:
            for path in list(self._watched):
                self._close(path)
            watcher.close()

    def _until_due_s(self) -> float | None:
        local = self._local_time()
        waits = [workspace.wait_ns(local) for workspace in self._watched.values()]
        known = [wait / 1e9 for wait in waits if wait is not None]
        if self._failed:
            known.append(_RETRY_S)
        return min(known) if known else None

    def _save_if_due(self, path: Path, watcher: Watcher) -> None:
        session = ""
        try:
            workspace = self._current(path, watcher)
            if workspace is not None:
                session = workspace.session or ""
                workspace.consider(self._local_time())
            self._failed.pop(path, None)
        except Exception as error:  # tried again at the next event, or after `_RETRY_S`
            self._failed[path] = self._watched.get(path) or self._failed.get(path)
            self._close(path)
            self._note_missed(path, session, error)

    def _current(self, path: Path, watcher: Watcher) -> WatchedWorkspace | None:
        """The workspace with its current store and settings."""
        from holdfast.api.automation import may_create_store, watch_workspace
        from holdfast.api.stores import store_directory

        kept = self._watched.get(path)
        if kept is not None:
            if kept.is_current():
                return kept
            self._close(path)
        if store_directory(path) is None and not may_create_store(path, self._environment):
            return None
        session = SessionId(self._sessions.session_id(path))
        opened = self._watched[path] = watch_workspace(
            path,
            watcher,
            self._environment,
            listener=self._happened.set,
            purpose="holdfast mcp",
        )
        former = self._failed.get(path)
        if former is not None:
            opened.take_over(former)
        if opened.has_checkpoint(session) and path not in self._failed:
            opened.attach(session)
        else:
            opened.begin(session)
        return opened

    def _close(self, path: Path) -> None:
        workspace = self._watched.pop(path, None)
        if workspace is not None:
            with suppress(HoldfastError, OSError):
                workspace.close()
