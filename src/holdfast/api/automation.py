"""The door for hooks, the daemon and `holdfast watch`: agent events and watched workspaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap.automation_host import LocalHost
from holdfast.bootstrap.automation_host import give_memory_back as give_memory_back
from holdfast.bootstrap.automation_host import is_on_a_network as is_on_a_network

if TYPE_CHECKING:
    from holdfast.app.automation.event_handler import EventHandler as EventHandler
    from holdfast.app.automation.host import EventWorkspace as EventWorkspace
    from holdfast.app.automation.host import Fallback as Fallback
    from holdfast.app.automation.host import OpenedForEvent as OpenedForEvent
    from holdfast.app.automation.problem_log import Problem as Problem
    from holdfast.app.automation.problem_log import ProblemLog as ProblemLog
    from holdfast.app.automation.watched_workspace import WatchedWorkspace as WatchedWorkspace
    from holdfast.app.open_workspace import OpenWorkspace as OpenWorkspace
    from holdfast.domain.agent_events import AgentEvent
    from holdfast.domain.settings.schema import Settings
    from holdfast.domain.triggers import TriggerRules
    from holdfast.ports.watcher import Watcher as Watcher
    from holdfast.ports.watcher import WatchStatus as WatchStatus


def event_handler(environment: Mapping[str, str], fallback: Fallback) -> EventHandler:
    """Handles the events of agents. `fallback` is for when the stores cannot be written."""
    from holdfast.app.automation.event_handler import EventHandler

    return EventHandler(LocalHost(environment, fallback))


def problem_log(environment: Mapping[str, str], fallback: Fallback) -> ProblemLog:
    """Events that could not be handled."""
    from holdfast.app.automation.problem_log import ProblemLog

    return ProblemLog(LocalHost(environment, fallback))


def open_watcher() -> Watcher:
    """The watcher of this system, or one that says why there is none."""
    from holdfast.bootstrap.automation_host import open_watcher

    return open_watcher()


def watch_workspace(
    workspace: Path,
    watcher: Watcher,
    environment: Mapping[str, str],
    *,
    listener: Callable[[], None] | None = None,
    rules: TriggerRules | None = None,
    purpose: str = "holdfast daemon",
) -> WatchedWorkspace:
    """Open a workspace and keep it open under watch; a store is created if there is none.
    `listener` is called when files have changed; `rules` win over the settings. Saves do not run
    the daily cleanup: no caller is to wait for it. `purpose` is what others read who wait for the
    store."""
    from holdfast.app.automation.watched_workspace import WatchedWorkspace
    from holdfast.bootstrap.workspace import open_workspace

    opened = open_workspace(
        workspace,
        create=True,
        spare_repositories=True,
        environment=environment,
        purpose=purpose,
    )
    opened.engine.cleans_up = False
    return WatchedWorkspace(opened, watcher, listener=listener, rules=rules)


def begins_unasked(workspace: Path, environment: Mapping[str, str]) -> bool:
    """Whether a server may create the store of a workspace that has none: in a project, unless
    every trigger is turned off."""
    from holdfast.bootstrap.settings import gather_settings
    from holdfast.bootstrap.workspace_choice import is_project
    from holdfast.domain.settings.schema import make_settings

    if not is_project(workspace):
        return False
    rules = trigger_rules(make_settings(gather_settings({}, workspace, environment).values))
    return bool(rules.files or rules.interval_ns or rules.end_of_day is not None or rules.merges)


def trigger_rules(settings: Settings) -> TriggerRules:
    """When automatic checkpoints are due, by the settings."""
    from holdfast.app.automation.watched_workspace import trigger_rules

    return trigger_rules(settings)


def clean_up(workspace: Path, environment: Mapping[str, str]) -> None:
    """The daily cleanup, with the store opened once more."""
    from holdfast.bootstrap.workspace import open_workspace
    from holdfast.ports.progress import NoProgress

    with open_workspace(workspace, create=False, environment=environment) as opened:
        opened.engine.cleanup(NoProgress(), asked=False)


def is_checked(opened: OpenWorkspace, event: AgentEvent) -> bool:
    """Whether the user wants the result of this tool call to be checked."""
    from holdfast.app.automation.event_handler import is_checked

    return is_checked(opened, event)


def needs_hook_process(workspace: WatchedWorkspace) -> str | None:
    """Why the events of a workspace have to be handled in the hook's own process, if they must."""
    from holdfast.domain.settings.schema import DEFAULTS

    settings = workspace.opened.engine.vault.settings
    if settings.daemon == "off":
        return "the settings turn it off"
    foreign = [name for name in settings.components if name not in DEFAULTS["components"]]
    if foreign:
        return f"{foreign[0]} is a plug-in, which may need the environment of the hook"
    return None
