"""The local machine for automation, see `holdfast.app.automation.host.Host`; and the directory that
an event is about: the one the agent was opened on, or the project that it is in."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local import system as processes
from holdfast.adapters.local.system import SystemClock
from holdfast.bootstrap.locations import holdfast_home
from holdfast.domain.errors import WorkspaceMissing

if TYPE_CHECKING:
    from holdfast.app.automation.host import Fallback
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.agent_events import AgentEvent
    from holdfast.ports.system import Processes
    from holdfast.ports.watcher import Watcher


class LocalHost:
    """Opens workspaces in one environment; imports are deferred until needed."""

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

    def workspace_of(self, event: AgentEvent, caller_directory: str) -> Path:
        return workspace_of(event, caller_directory)

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
            exclude_nested_repositories=True,
            environment=self.environment,
            purpose=purpose,
            for_hook=True,
        )


def release_memory() -> None:
    """Return memory that this process no longer needs to the system."""
    from holdfast.adapters.local.linux_calls import release_memory

    release_memory()


def is_on_a_network(directory: Path) -> bool:
    """Whether other machines may see the directory too."""
    from holdfast.adapters.local.mounts import is_on_a_network

    return is_on_a_network(directory)


def open_watcher() -> Watcher:
    """The watcher for this system, or one that gives the reason why there is none."""
    from holdfast.ports.watcher import NoWatcher

    if sys.platform != "linux":
        return _watcher_elsewhere()
    from holdfast.adapters.local.inotify import InotifyWatcher

    try:
        return InotifyWatcher(SystemClock())
    except OSError as error:
        return NoWatcher(f"watching failed: {error.strerror}")


def _watcher_elsewhere() -> Watcher:
    from holdfast.adapters.local.watchfiles_watch import WatchfilesWatcher
    from holdfast.ports.watcher import NoWatcher

    try:
        return WatchfilesWatcher(SystemClock())
    except ImportError:
        return NoWatcher("watching needs another package: pip install watchfiles")


def workspace_of(event: AgentEvent, caller_directory: str = os.curdir) -> Path:
    """The workspace to save: one that already has a store, or else the root of the project.

    An agent may be in a directory below; the directory it was opened on is protected. This holds
    even while the agent is in a directory that is not a project, such as /tmp. An agent started
    above its projects is protected in the project that its tool names. Files written in a worktree
    below are saved with that worktree. `caller_directory` is the directory of the hook's process,
    to which paths are relative.
    """
    from holdfast.bootstrap.workspace_choice import is_project

    current = (
        _directory(event.cwd, caller_directory)
        or _last_known(event.cwd)
        or _directory(caller_directory, os.curdir)
    )
    chosen = _opened_on(event, current, caller_directory)
    if is_project(chosen):
        return _worktree_of_paths(event.paths, current or chosen, chosen) or chosen
    found = _project_of_paths(_named(event, chosen), current or chosen)
    # A project around the directory leaves it out, or it would have been chosen.
    return chosen if found is None or found in chosen.parents else found


def _named(event: AgentEvent, chosen: Path) -> tuple[str, ...]:
    """The paths that a tool is about to change, or that its command works in."""
    if not event.command:
        return event.paths
    from holdfast.domain.external_paths import resolve_paths
    from holdfast.domain.shell.risk import assess
    from holdfast.engine.shell_parser import parse

    workspace = str(chosen)
    risk = assess(parse(event.command), workspace=workspace, directory=event.cwd, parse=parse)
    from_home = [
        place
        for place in resolve_paths(risk.places, os.environ.get("HOME"))
        if chosen in Path(place).parents
    ]
    mentioned = [place for place in risk.mentioned if _nearest_directory(chosen, place) != chosen]
    return (*risk.inside, *from_home, *mentioned)


def _worktree_of_paths(paths: tuple[str, ...], current: Path, workspace: Path) -> Path | None:
    """The one worktree or repository, inside the workspace and not saved by it, that contains all
    paths."""
    from holdfast.bootstrap.workspace_choice import own_project

    places = {_nearest_directory(current, path) for path in paths}
    inside = {place for place in places if place is not None and workspace in place.parents}
    found = {own_project(workspace, place) for place in inside} if inside == places else set()
    return found.pop() if len(found) == 1 else None


def _opened_on(event: AgentEvent, current: Path | None, caller_directory: str) -> Path:
    from holdfast.bootstrap.workspace_choice import (
        own_project,
        project_top,
        workspace_around,
        workspace_for,
    )

    project = _directory(event.project, caller_directory)
    if project is not None and Path.home().resolve().is_relative_to(project):
        project = None  # an agent started at home, or above, reveals nothing
    if project is not None and (current is None or current.is_relative_to(project)):
        opened_on = workspace_for(project, opened_on=True)
        return own_project(opened_on, current or project) or opened_on
    if current is None:
        raise WorkspaceMissing(
            f"the directory {event.cwd or event.project} does not exist",
            hint="start the agent in an existing directory",
        )
    found = workspace_around(current) or project_top(current)
    if found is None and project is not None:
        return workspace_for(project, opened_on=True)
    return found or current


def _project_of_paths(paths: tuple[str, ...], current: Path) -> Path | None:
    """The one project that contains all paths, if there is one."""
    from holdfast.bootstrap.workspace_choice import is_project, workspace_for

    places = {_nearest_directory(current, path) for path in paths}
    projects = {workspace_for(place) for place in places if place is not None}
    found = projects.pop() if len(projects) == 1 and None not in places else None
    return found if found is not None and is_project(found) else None


def _nearest_directory(current: Path, path: str) -> Path | None:
    place = current / path
    for above in (place, *place.parents) if "\0" not in path else ():
        if (found := _directory(str(above), os.curdir)) is not None:
            return found
    return None


def _directory(path: str | None, base: str) -> Path | None:
    if not path or "\0" in path:
        return None
    try:
        found = (Path(base) / Path(path).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return found if found.is_dir() else None


def _last_known(path: str | None) -> Path | None:
    """The workspace or the project of a directory that no longer exists."""
    from holdfast.bootstrap.workspace_choice import project_top, workspace_around

    for above in Path(path).parents if path and os.path.isabs(path) else ():
        if (left := _directory(str(above), os.curdir)) is not None:
            return workspace_around(left) or project_top(left)
    return None
