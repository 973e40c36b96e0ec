"""Entry points for hooks, the daemon and `holdfast watch`: agent events and watched workspaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap.automation_host import LocalHost
from holdfast.bootstrap.automation_host import is_on_a_network as is_on_a_network
from holdfast.bootstrap.automation_host import release_memory as release_memory

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
    """Handle agent events. `fallback` is used if the stores are not writable."""
    from holdfast.app.automation.event_handler import EventHandler

    return EventHandler(LocalHost(environment, fallback))


def problem_log(environment: Mapping[str, str], fallback: Fallback) -> ProblemLog:
    """The log of events that could not be handled."""
    from holdfast.app.automation.problem_log import ProblemLog

    return ProblemLog(LocalHost(environment, fallback))


def open_watcher() -> Watcher:
    """This system's watcher, or a substitute that reports why there is none."""
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
    """Open a workspace and keep it open and watched. A missing store is created. `listener` is
    called when files have changed. `rules` override the settings. Saves do not run the daily
    cleanup, so that callers do not wait for it. `purpose` is shown to processes that wait for the
    store."""
    from holdfast.app.automation.watched_workspace import WatchedWorkspace
    from holdfast.bootstrap.workspace import open_workspace

    opened = open_workspace(
        workspace,
        create=True,
        exclude_nested_repositories=True,
        environment=environment,
        purpose=purpose,
    )
    opened.engine.cleans_up = False
    return WatchedWorkspace(opened, watcher, listener=listener, rules=rules)


def may_create_store(workspace: Path, environment: Mapping[str, str]) -> bool:
    """Whether a server may create the missing store of a workspace: in a project, unless every
    trigger is off."""
    from holdfast.bootstrap.settings import gather_settings
    from holdfast.bootstrap.workspace_choice import is_project
    from holdfast.domain.settings.schema import make_settings

    if not is_project(workspace):
        return False
    rules = trigger_rules(make_settings(gather_settings({}, workspace, environment).values))
    return bool(rules.files or rules.interval_ns or rules.end_of_day is not None or rules.merges)


def trigger_rules(settings: Settings) -> TriggerRules:
    """When automatic checkpoints are due, according to the settings."""
    from holdfast.app.automation.watched_workspace import trigger_rules

    return trigger_rules(settings)


def clean_up(workspace: Path, environment: Mapping[str, str]) -> None:
    """Run the daily cleanup with a newly opened store."""
    from holdfast.bootstrap.workspace import open_workspace
    from holdfast.engine.retention.cleanup import cleanup
    from holdfast.ports.progress import NoProgress

    with open_workspace(workspace, create=False, environment=environment) as opened:
        cleanup(opened.engine, NoProgress(), asked=False)


def is_checked(opened: OpenWorkspace, event: AgentEvent) -> bool:
    """Whether the user wants this tool call's result checked."""
    from holdfast.app.automation.event_handler import is_checked

    return is_checked(opened, event)


def needs_hook_process(workspace: WatchedWorkspace) -> str | None:
    """Why a workspace's events must be handled in the hook's own process; None if they need not
    be."""
    from holdfast.domain.settings.schema import DEFAULTS

    settings = workspace.opened.engine.vault.settings
    if settings.daemon == "off":
        return "the settings turn it off"
    foreign = [name for name in settings.components if name not in DEFAULTS["components"]]
    if foreign:
        return f"{foreign[0]} is a plug-in, which may need the environment of the hook"
    return None
