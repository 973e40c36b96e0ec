"""Whether the hooks and MCP servers of agents would run.

    in the settings? → as this version writes them? → program found? → does the agent run them?

It only reads settings, so it is cheap enough for every `status`. Code that edits them is imported
only if there are some. Checkpoints show when an agent was last seen, so events need not record it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from holdfast.api.stores import holdfast_home
from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.agent_setup.holdfast_command import NAME, not_found
from holdfast.interfaces.agents import AGENTS, agent_named, every_agent
from holdfast.interfaces.agents.agent import SCOPES, Agent, Locations, SettingsFile
from holdfast.values.classes import dataclass, replace

_GONE_FOR = timedelta(days=7)
_REMOVED = "removed-hooks"


@dataclass(frozen=True, slots=True)
class Protection:
    """The hooks, or the MCP server, of one agent in one place. `protected`: they would run. `cure`
    is what the user has to do, even if they run but are out of date. `last_event` is the time of
    the agent's last checkpoint in this workspace. `program` is how the hooks call Holdfast.
    `removed_by_user`: with `holdfast uninstall`, so no warning is needed."""

    agent: str
    scope: str
    path: Path | None
    protected: bool
    finding: str
    cure: str | None = None
    last_event: datetime | None = None
    program: str | None = None
    removed_by_user: bool = False


def locations(workspace: Path) -> Locations:
    return Locations(workspace.resolve(), Path.home(), os.environ)


def protections(
    workspace: Path,
    last_events: Mapping[str, datetime] | None = None,
    *,
    now: datetime | None = None,
) -> list[Protection]:
    """Every agent that has Holdfast's hooks here or for the user, or had them a few days ago."""
    at = locations(workspace)
    seen = last_events or {}
    found = [
        replace(one, last_event=seen.get(one.agent))
        for agent in every_agent()
        for one in _installed(agent, at)
    ]
    known = {one.agent for one in found}
    since = (now or datetime.now(UTC)) - _GONE_FOR
    for agent, at_last in seen.items():
        if (
            agent in AGENTS
            and agent not in known
            and at_last >= since
            and known.isdisjoint(agent_named(agent).runs_hooks_of)
        ):
            if was_removed(agent, at.workspace):
                found.append(_removed(agent, at_last))
                continue
            finding = "its hooks were removed from its settings"
            cure = f"holdfast install {agent}"
            found.append(Protection(agent, "", None, False, finding, cure, at_last))
    return found


def _removed(agent: str, at_last: datetime) -> Protection:
    words = "hooks removed by you"
    return Protection(agent, "", None, False, words, last_event=at_last, removed_by_user=True)


def unprotected(found: Sequence[Protection]) -> list[Protection]:
    """One finding for each agent that no hook protects."""
    safe = {one.agent for one in found if one.protected}
    left = {one.agent: one for one in reversed(found) if one.agent not in safe}
    return [left[agent] for agent in AGENTS if agent in left]


def _installed(agent: Agent, at: Locations) -> Iterator[Protection]:
    for scope in SCOPES:
        one = _in_settings(agent, scope, at)
        if one is not None:
            yield one
    plugin = _plugin_of(agent, at)
    if plugin is not None:
        yield Protection(agent.name, "plug-in", plugin, True, f"a plug-in in {plugin}")


def _in_settings(agent: Agent, scope: str, at: Locations) -> Protection | None:
    places = agent.hook_files(scope, at, NAME)
    if all(_is_absent(place.path) for place in places):
        return None
    from holdfast.interfaces.agent_setup.install_plan import installed_program, plan_install

    name, path = agent.name, places[0].path
    again = f"holdfast install {name} --{scope}"
    try:
        program = installed_program(agent, places)
        if program is None:
            return _without_command(agent, scope, places, again)
    except HoldfastError as error:  # the agent cannot read it either
        return Protection(name, scope, path, False, error.message, error.hint)
    if (missing := not_found(program)) is not None:
        return Protection(name, scope, path, False, f"its hooks cannot run: {missing}", again)
    if (kept_back := agent.withheld(scope, at, places[-1].path)) is not None:
        return Protection(name, scope, path, False, kept_back.reason, kept_back.cure)
    try:
        planned = plan_install(agent, agent.hook_files(scope, at, program), program)
    except HoldfastError as error:  # the user has edited it
        return Protection(name, scope, path, True, error.message, error.hint, program=program)
    stale = [change.path for change in planned if change.word != "unchanged"]
    if stale:
        finding = f"{stale[0]} was written by another version or edited"
        return Protection(name, scope, stale[0], True, finding, again, program=program)
    return Protection(name, scope, path, True, f"hooks in {path}", program=program)


def _without_command(
    agent: Agent, scope: str, places: Sequence[SettingsFile], again: str
) -> Protection | None:
    """Files from Holdfast exist, but none calls it."""
    from holdfast.interfaces.agent_setup.install_plan import is_installed

    there = [place.path for place in places if is_installed(agent, place)]
    if not there:
        return None
    return Protection(
        agent.name, scope, there[0], False, f"{there[0]} contains no Holdfast hook", again
    )


def _plugin_of(agent: Agent, at: Locations) -> Path | None:
    """Where an agent has recorded Holdfast's plug-in as installed, if it has."""
    path = agent.plugin_record(at)
    if path is None or _is_absent(path):
        return None
    from holdfast.interfaces.agent_setup.settings_file import read_settings

    try:
        text = read_settings(path)[0]
    except HoldfastError:
        return None
    return path if text is not None and '"holdfast@' in text else None


def _is_absent(path: Path) -> bool:
    """Whether there is nothing at the path, not even a dangling link."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def examine_servers(workspace: Path) -> Iterator[Protection]:
    """Every agent with Holdfast's MCP server in its settings, and whether the entry is current."""
    from holdfast.interfaces.agent_setup.install_plan import (
        has_server,
        plan_install,
        server_program,
    )

    at = locations(workspace)
    for agent, scope in ((agent, scope) for agent in every_agent() for scope in SCOPES):
        for place in server_files(agent, scope, at, NAME):
            try:
                whose = has_server(place)
                if whose is False:
                    continue
                program = server_program(place) if whose else NAME
                own = place._replace(server=agent.server(program))
                stale = whose and plan_install(agent, [own], program)[0].differs
                missing = not_found(program) if whose else None
            except HoldfastError as error:
                yield Protection(agent.name, scope, place.path, False, error.message, error.hint)
                continue
            finding = f"MCP server in {place.path}" + ("" if whose else ", set up by hand")
            if stale:
                finding = f"the MCP server in {place.path} was written by another version or edited"
            if missing:
                finding = f"the MCP server in {place.path} cannot start: {missing}"
            cure = f"holdfast install {agent.name} --{scope} --mcp" if stale or missing else None
            yield Protection(agent.name, scope, place.path, cure is None, finding, cure)


def server_files(agent: Agent, scope: str, at: Locations, program: str) -> list[SettingsFile]:
    """Files that may contain the agent's MCP servers, with Holdfast's entry."""
    server = agent.server(program)
    return [
        SettingsFile(path, hooks=False, server=server) for path in agent.server_files(scope, at)
    ]


def note_removed(agent: str, scope: str, workspace: Path) -> None:
    """Record that the user removed the hooks with `holdfast uninstall`, so that no warning appears.

    The record is an empty file below `$HOLDFAST_HOME/removed-hooks`. A digest of the agent and the
    workspace, or of the user's settings, is its name. If it cannot be written, another program
    counts as the remover.
    """
    place = _removal_note(agent, scope, workspace)
    if not place.parent.parent.is_dir():
        return  # nothing was ever saved, so the hooks are not missed
    with contextlib.suppress(OSError):
        place.parent.mkdir(mode=0o700, exist_ok=True)
        place.touch(mode=0o600)


def forget_removed(agent: str, workspace: Path) -> None:
    """The agent has hooks again. Warn from now on when they are gone."""
    for scope in SCOPES:
        with contextlib.suppress(OSError):
            _removal_note(agent, scope, workspace).unlink()


def was_removed(agent: str, workspace: Path) -> bool:
    return any(_removal_note(agent, scope, workspace).exists() for scope in SCOPES)


def _removal_note(agent: str, scope: str, workspace: Path) -> Path:
    import hashlib  # late: seldom needed

    whose = os.fsencode(workspace.resolve()) if scope == "project" else b""
    digest = hashlib.sha256(b"\0".join((agent.encode(), scope.encode(), whose))).hexdigest()
    return holdfast_home(os.environ) / _REMOVED / digest[:32]
