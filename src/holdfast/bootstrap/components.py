"""Assembly of a workspace's components, and of other parts that few saves need: part of the
composition root.

Each built-in component has one entry in `components_of`: how to create it, and whether it may
apply, checked without loading it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.components.installed import BuiltIn, InstalledComponents, has_git
from holdfast.domain.errors import UsageError
from holdfast.domain.sessions import SessionStatus
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.components.agents.component import KnownAgent
    from holdfast.domain.settings.schema import Settings
    from holdfast.domain.transcript_messages import MessageOf
    from holdfast.engine.vault import Vault
    from holdfast.ports.component import Component
    from holdfast.ports.objects import ObjectWriter
    from holdfast.ports.repository import WorkRepository
    from holdfast.ports.scan_hints import ReadingAid
    from holdfast.ports.store import OpenStore

_AGENTS = "holdfast.interfaces.agents"
"""Agents are plug-ins above this layer, so the package is loaded by name, on demand."""

_SECOND_READER = "holdfast.bootstrap.second_reader"
"""Runs in a process of its own."""


class LocalSecondReader:
    """See `holdfast.ports.scan_hints.SecondReader`: another process, imported on use."""

    def __init__(self, settings: Settings, workspace: Path, store: OpenStore) -> None:
        self._settings = settings
        self._workspace = workspace
        self._store = store

    def aid_for(self, writer: ObjectWriter) -> ReadingAid | None:
        from holdfast.adapters.local.objects.writer import LocalObjectWriter
        from holdfast.adapters.local.reading_process import ReadingProcess, reading_job

        if not isinstance(writer, LocalObjectWriter) or not writer.nothing_stored_yet:
            return None
        by_tools = self._settings.capture_named_ignored == "on"
        named = self._store.named_paths.load() if by_tools else ()
        own_data = self._store.path_inside_workspace()
        job = reading_job(self._settings, self._workspace, own_data, named)
        return ReadingProcess(writer, job, _SECOND_READER)


def with_parts(vault: Vault, environment: Mapping[str, str], store: OpenStore) -> Vault:
    """The vault with components, and with access to the workspace's repository."""

    def repository() -> WorkRepository:
        from holdfast.components.git.work_repository import GitWork

        return GitWork(environment)

    components = components_of(vault, environment, store)
    return replace(vault, components=components, open_repository=repository)


def components_of(
    vault: Vault, environment: Mapping[str, str], store: OpenStore
) -> InstalledComponents:
    """Nothing is imported before a component is needed."""

    settings = vault.settings
    with_nested = settings.git_nested == "on"

    def git() -> Component:
        from holdfast.components.git.component import GitComponent

        noted = store.nested_repositories
        return GitComponent(
            environment, noted=noted, with_nested=with_nested, mirror=settings.mirror
        )

    def agents() -> Component:
        from holdfast.components.agents.component import AgentsComponent

        return AgentsComponent(
            settings.agent_state,
            environment,
            store.agent_states,
            workspace=vault.workspace,
            stores=store.directory.parent.parent,
            sessions=lambda: _active_sessions(vault),
            of_agents=lambda: _active_sessions(vault, of_agents=True),
            agents=known_agents,
        )

    def postgres() -> Component:
        from holdfast.components.postgres.component import PostgresComponent

        return PostgresComponent(settings.postgres, environment)

    def worktrees() -> Component:
        from holdfast.components.worktrees.component import WorktreesComponent

        return WorktreesComponent(environment, files=settings.worktree_files)

    def external() -> Component:
        from holdfast.components.external.component import ExternalComponent

        return ExternalComponent(store.external_paths, stores=store.directory.parent.parent)

    def of_process() -> Component:
        from holdfast.components.environment.component import EnvironmentComponent

        return EnvironmentComponent(environment)

    built_in = {
        "git": BuiltIn(git, lambda workspace: with_nested or has_git(workspace)),
        "agents": BuiltIn(
            agents, lambda _: bool(settings.agent_state) or store.agent_states.exist()
        ),
        "postgres": BuiltIn(
            postgres,
            lambda _: any(s[:1] in "/~" or environment.get(s) for s in settings.postgres),
        ),
        "worktrees": BuiltIn(worktrees, has_git),
        "external": BuiltIn(external, lambda _: store.external_paths.exist()),
        "environment": BuiltIn(of_process, lambda _: True, recorded_only=True),
    }

    def within_time(load: Callable[[], Component]) -> Component:
        from holdfast.engine.components.guard import Refusal, guarded
        from holdfast.ports.component import ComponentProblem

        try:
            return guarded(load, timeout_s=settings.component_timeout)
        except Refusal as error:
            raise ComponentProblem(str(error)) from None

    return InstalledComponents(settings.components, built_in, within_time)


def _active_sessions(vault: Vault, *, of_agents: bool = False) -> list[str]:
    from holdfast.engine.sessions.active_agents import effective_status
    from holdfast.engine.sessions.overview import listed_sessions

    return [
        session.id if session.agent is None else f"{session.id} ({session.agent})"
        for session in listed_sessions(vault)  # without deleted ones
        if (session.agent is not None or not of_agents)
        and effective_status(vault, session) is SessionStatus.ACTIVE
    ]


def known_agents() -> dict[str, KnownAgent]:
    """Every agent by its name."""
    return {agent.name: agent for agent in import_module(_AGENTS).every_agent()}


def transcript_reader(name: str) -> MessageOf:
    """The parser for a line of an agent's transcript."""
    readers: dict[str, MessageOf] = {
        agent.name: agent.transcript_message
        for agent in import_module(_AGENTS).every_agent()
        if agent.reads_transcript
    }
    if name not in readers:
        raise UsageError(
            f"unknown transcript format: {name!r}", hint=f"known formats: {', '.join(readers)}"
        )
    return readers[name]
