"""The external services of automation: the machine, and the workspace of an event."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.agent_events import AgentEvent, Reply
from holdfast.domain.errors import NotFound, StoreMissing

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.ports.system import Clock, Processes


class Fallback(Protocol):
    """Where to report when the directory of the stores cannot be written. Usually on another file
    system, in directories that only the user can enter."""

    def files(self, name: str) -> list[Path]:
        """Where a file of this name may be, the best first; they may not exist."""

    def is_private(self, directory: Path) -> bool:
        """Whether the directory exists, and only the user can enter it."""

    def require_private(self, directory: Path) -> None:
        """Create the directory if it is missing; raises unless only the user can enter it."""

    def complain(self, text: str) -> None:
        """The last resort, when no file can be written. Never raises."""


class Host(Protocol):
    """The machine and its user. `home` is the directory of the stores."""

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def home(self) -> Path: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def processes(self) -> Processes: ...

    @property
    def fallback(self) -> Fallback: ...

    def working_directory(self) -> str:
        """The directory of this process; empty if it is gone."""

    def workspace_of(self, event: AgentEvent, caller_directory: str) -> Path:
        """The event's workspace. `caller_directory` is the directory of the hook's process, to
        which paths are relative."""

    def own_project(self, workspace: Path, directory: Path) -> Path | None:
        """The worktree, repository or workspace between the two that is saved separately."""

    def has_store(self, workspace: Path) -> bool: ...

    def open_workspace(self, workspace: Path, *, create: bool, purpose: str) -> OpenWorkspace:
        """`NotFound` or `StoreMissing` if there is no store, unless `create`. Then it is created
        without asking, because no user is present."""


class EventWorkspace(Protocol):
    """The workspace of one event, from the interface: opened for this event in the hook's process,
    or kept open by the daemon. An interface may refuse an event with its own exception, which
    reaches its caller."""

    @property
    def path(self) -> Path: ...

    def use(self, event: AgentEvent, work: Callable[[OpenWorkspace], Reply]) -> Reply | None:
        """Do the work in the workspace. An event that `begins` creates a missing store; any other
        event returns None without one."""


class OpenedForEvent:
    """An `EventWorkspace` that opens the workspace for one event, in the hook's own process.
    `allows_daemon`: the settings allow a daemon for later events."""

    def __init__(self, host: Host, event: AgentEvent) -> None:
        self._host = host
        self._event = event
        self.allows_daemon = False

    @property
    def path(self) -> Path:
        return self._host.workspace_of(self._event, os.curdir)

    def use(self, event: AgentEvent, work: Callable[[OpenWorkspace], Reply]) -> Reply | None:
        purpose = f"holdfast hook {event.agent}"
        try:
            opened = self._host.open_workspace(self.path, create=event.begins, purpose=purpose)
        except (NotFound, StoreMissing):
            if event.begins:
                raise
            return None
        with opened:
            self.allows_daemon = opened.engine.vault.settings.daemon == "on"
            return work(opened)
