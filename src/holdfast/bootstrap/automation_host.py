"""This machine for automation: see `holdfast.app.automation.host.Host`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local import system as processes
from holdfast.adapters.local.system import SystemClock
from holdfast.bootstrap.locations import holdfast_home

if TYPE_CHECKING:
    from holdfast.app.automation.host import Fallback
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.agent_events import AgentEvent
    from holdfast.ports.system import Processes
    from holdfast.ports.watcher import Watcher


class LocalHost:
    """Opens workspaces in one environment; imports what that takes when it is needed."""

    def __init__(self, environment: Mapping[str, str], fallback: Fallback) -> None:
        self.environment = environment
        self.fallback = fallback
        self.clock = SystemClock()
        self.processes: Processes = processes

    @property
    def home(self) -> Path:
        return holdfast_home(self.environment)

    def working_directory(self) -> str:
        try:
            return os.getcwd()
        except OSError:
            return ""

    def workspace_of(self, event: AgentEvent, standing_in: str) -> Path:
        from holdfast.bootstrap.event_workspace import workspace_of

        return workspace_of(event, standing_in)

    def own_project(self, workspace: Path, directory: Path) -> Path | None:
        from holdfast.bootstrap.workspace_choice import own_project

        return own_project(workspace, directory)

    def has_store(self, workspace: Path) -> bool:
        from holdfast.bootstrap.stores import store_of

        return store_of(workspace, self.environment) is not None

    def open_workspace(self, workspace: Path, *, create: bool, purpose: str) -> OpenWorkspace:
        from holdfast.bootstrap.workspace import open_workspace

        return open_workspace(
            workspace,
            create=create,
            protect=True,
            spare_repositories=True,
            environment=self.environment,
            purpose=purpose,
            for_hook=True,
        )


def give_memory_back() -> None:
    """Return memory that this process no longer needs to the system."""
    from holdfast.adapters.local.linux_calls import give_memory_back

    give_memory_back()


def is_on_a_network(directory: Path) -> bool:
    """Whether other machines may see the directory, too."""
    from holdfast.adapters.local.mounts import is_on_a_network

    return is_on_a_network(directory)


def open_watcher() -> Watcher:
    """The watcher of this system, or one that says why there is none."""
    from holdfast.ports.watcher import NoWatcher

    if sys.platform != "linux":
        return _watcher_elsewhere()
    from holdfast.adapters.local.watching.inotify import InotifyWatcher

    try:
        return InotifyWatcher(SystemClock())
    except OSError as error:
        return NoWatcher(f"watching failed: {error.strerror}")


def _watcher_elsewhere() -> Watcher:
    from holdfast.adapters.local.watching.watchfiles_watch import WatchfilesWatcher
    from holdfast.ports.watcher import NoWatcher

    try:
        return WatchfilesWatcher(SystemClock())
    except ImportError:
        return NoWatcher("watching needs a package here: pip install 'holdfast[watch]'")
