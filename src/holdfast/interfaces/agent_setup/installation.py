"""Installing the hooks of an agent, and our MCP server where that is wanted; taking them out, and
looking whether they are in order."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.domain.errors import HoldfastError, Refused, UsageError
from holdfast.interfaces.agent_setup.carrying_out import carry_out
from holdfast.interfaces.agent_setup.changes import (
    FileChange,
    has_server,
    is_installed,
    may_be_installed,
    plan_install,
    plan_uninstall,
)
from holdfast.interfaces.agent_setup.placements import (
    SCOPES,
    Locations,
    Place,
    places_of,
    server_places,
    skill_places,
)
from holdfast.interfaces.agent_setup.server_entries import by_hand
from holdfast.interfaces.hooks.agents import AGENTS

_TRY_SECONDS = 60
_OTHERS_READ = {"cursor": ("claude-code",), "copilot": ("claude-code",)}
"""Agents that also run the hooks of others."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What an `install` or `uninstall` did, or would do."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    verified: bool | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """How the hooks of one agent are found: `cure` is None when they are in order."""

    agent: str
    scope: str
    path: Path
    finding: str
    cure: str | None = None


def require_agent(words: Sequence[str]) -> str:
    if len(words) != 1:
        raise UsageError("name one agent", hint=f"agents are: {', '.join(AGENTS)}")
    if words[0] not in AGENTS:
        raise UsageError(f"there is no agent {words[0]!r}", hint=f"agents are: {', '.join(AGENTS)}")
    return words[0]


def locations(workspace: Path) -> Locations:
    return Locations(workspace.resolve(), Path.home(), os.environ)


def our_program() -> str:
    """How an agent calls us: by name where that is found, else as this very interpreter does; it
    must not load modules from the project that it is started in, which -P keeps it from."""
    if shutil.which("holdfast") is not None:
        return "holdfast"
    return f"{shlex.quote(sys.executable)} -P -m holdfast"


def install(
    agent: str,
    scope: str,
    workspace: Path,
    *,
    with_skills: bool,
    with_mcp: bool,
    dry_run: bool,
) -> Installation:
    """The command is tried before anything is written: what cannot run is not set up."""
    at, program = locations(workspace), our_program()
    places = places_of(agent, scope, at, program)
    places += skill_places(agent, scope, at) if with_skills else []
    if with_mcp:
        places = _joined(places, [_server_place(agent, scope, at, program)])
    changes = plan_install(agent, places, program)
    notes = tuple(_neighbours(agent, scope, at, program))
    if dry_run:
        return Installation(tuple(changes), notes)
    _try(agent, program, workspace)
    if with_mcp and any(change.differs for change in changes):
        _try_server(program)
    carry_out(changes, keep=(at.workspace, at.home))
    return Installation(tuple(changes), notes, verified=True)


def uninstall(agent: str, scope: str, workspace: Path, *, dry_run: bool) -> Installation:
    at, program = locations(workspace), our_program()
    servers = [
        place
        for place in server_places(agent, scope, at, program)
        if has_server(place) is not False
    ]
    changes = plan_uninstall(agent, _joined(places_of(agent, scope, at, program), servers))
    changes += [
        change
        for change in plan_uninstall(agent, skill_places(agent, scope, at))
        if not _shared(agent, scope, at)
    ]
    if not dry_run:
        carry_out(changes, keep=(at.workspace, at.home))
    found = tuple(change for change in changes if change.before is not None)
    return Installation(found, tuple(_way_out(change) for change in found if change.kept))


def _joined(places: Sequence[Place], servers: Sequence[Place]) -> list[Place]:
    """Both, where a file that is in both is one place."""
    own = {place.path: place.server for place in servers}
    joined = [replace(place, server=own.pop(place.path, None)) for place in places]
    return joined + [place for place in servers if place.path in own]


def _server_place(agent: str, scope: str, at: Locations, program: str) -> Place:
    """The file that has our server, else one that is there, else the usual one."""
    places = server_places(agent, scope, at, program)
    if not places:
        why, instead = by_hand(agent, program)
        raise Refused(why, hint=instead)
    there = [place for place in places if place.path.exists()]
    return next((place for place in there if has_server(place) is not False), [*there, *places][0])


def _way_out(change: FileChange) -> str:
    if change.shared:
        return f"something in {change.path} is left: {change.kept}. Take it out by hand if need be"
    return (
        f"{change.path} is left as it is: {change.kept}. "
        f"Take out by hand what you do not want, or remove it: rm {shlex.quote(str(change.path))}"
    )


def examine_agents(workspace: Path) -> Iterator[Finding]:
    """Every agent that has hooks of ours, here or for the user, and whether they would work."""
    at, program = locations(workspace), our_program()
    for agent in AGENTS:
        for scope in SCOPES:
            places = places_of(agent, scope, at, program)
            try:
                if not any(is_installed(agent, place) for place in places):
                    continue
                stale = [c for c in plan_install(agent, places, program) if c.word != "unchanged"]
            except HoldfastError as error:
                yield Finding(agent, scope, places[0].path, error.message, error.hint)
                continue
            again = f"holdfast install {agent} --{scope}"
            if stale:
                finding = f"{stale[0].path} is not as this version writes it"
                yield Finding(agent, scope, stale[0].path, finding, again)
            else:
                yield Finding(agent, scope, places[0].path, f"hooks in {places[0].path}")


def examine_servers(workspace: Path) -> Iterator[Finding]:
    """Every agent that has our MCP server in its settings, and whether it is as we write it."""
    at, program = locations(workspace), our_program()
    for agent, scope in ((agent, scope) for agent in AGENTS for scope in SCOPES):
        for place in server_places(agent, scope, at, program):
            try:
                whose = has_server(place)
                if whose is False:
                    continue
                stale = whose and plan_install(agent, [place], program)[0].differs
            except HoldfastError as error:
                yield Finding(agent, scope, place.path, error.message, error.hint)
                continue
            told = f"MCP server in {place.path}" + ("" if whose else ", set up by hand")
            if stale:
                told = f"{place.path} has the MCP server not as this version writes it"
            cure = f"holdfast install {agent} --{scope} --mcp" if stale else None
            yield Finding(agent, scope, place.path, told, cure)


def _neighbours(agent: str, scope: str, at: Locations, program: str) -> Iterator[str]:
    """Where the same event would be delivered twice; it counts once, and costs twice."""
    for other in _OTHERS_READ.get(agent, ()):
        for place in (p for s in SCOPES for p in places_of(other, s, at, program)):
            if may_be_installed(other, place):
                yield f"{agent} also runs the hooks in {place.path}; an event counts once"
    elsewhere = "user" if scope == "project" else "project"
    for place in places_of(agent, elsewhere, at, program)[:1]:
        if may_be_installed(agent, place):
            yield f"also installed in {place.path}; an event counts once"


def _shared(agent: str, scope: str, at: Locations) -> bool:
    """Whether another agent that is installed uses the same skills."""
    program = our_program()
    own = [place.path for place in skill_places(agent, scope, at)]
    return any(
        other != agent
        and [place.path for place in skill_places(other, scope, at)] == own
        and any(may_be_installed(other, place) for place in places_of(other, scope, at, program))
        for other in AGENTS
    )


def _try(agent: str, program: str, workspace: Path) -> None:
    """Run the hook once as the agent does, with an event that asks for nothing."""
    event = {"hook_event_name": "Notification", "session_id": "installation"}
    try:
        tried = subprocess.run(
            ["sh", "-c", f"{program} hook {agent}"],
            input=json.dumps(event).encode(),
            capture_output=True,
            cwd=workspace,
            timeout=_TRY_SECONDS,
            check=False,
        )
        answer = tried.stdout.decode("utf-8", "replace").strip()
        sound = tried.returncode == 0 and isinstance(json.loads(answer or "{}"), dict)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        sound = False
    if not sound:
        raise Refused(
            f"the command {program!r} does not answer as a hook; nothing was changed",
            hint="check that it runs: holdfast --version",
        )


def _try_server(program: str) -> None:
    """Start the server once as the agent does, for a directory of nothing; it ends with its
    input."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as nothing:
        try:
            tried = subprocess.run(
                [*shlex.split(program), "mcp", nothing],
                input=b"",
                capture_output=True,
                cwd=nothing,
                timeout=_TRY_SECONDS,
                check=False,
            )
            sound = tried.returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            sound = False
    if not sound:
        raise Refused(
            f"the command '{program} mcp' does not start; nothing was changed",
            hint="it needs the extra mcp: pip install 'holdfast[mcp]'",
        )
