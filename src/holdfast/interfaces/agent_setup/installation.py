"""Installs and removes an agent's hooks and, on request, Holdfast's MCP server."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.api.health import write_gaps
from holdfast.api.stores import why_no_project
from holdfast.domain.errors import Refused, UsageError, WorkspaceRefused
from holdfast.interfaces.agent_setup.holdfast_command import (
    NAME,
    agents_environment,
    our_program,
)
from holdfast.interfaces.agent_setup.install_plan import (
    has_server,
    may_be_installed,
    plan_install,
    plan_uninstall,
)
from holdfast.interfaces.agent_setup.protection import (
    forget_removed,
    locations,
    note_removed,
    server_files,
)
from holdfast.interfaces.agent_setup.settings_file import FileChange, apply_changes
from holdfast.interfaces.agent_setup.shipped_files import skill_files
from holdfast.interfaces.agents import AGENTS, agent_named, every_agent
from holdfast.interfaces.agents.agent import SCOPES, Agent, Locations, SettingsFile, Withheld

_TRY_SECONDS = 60
_MOST_SAID = 300
_FARTHEST_SPELLING = 2
_GIT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Installation:
    """What an `install` or `uninstall` did, or would do. `test_event_ms` is the duration of a test
    event, and `withheld` says why the hooks protect nothing yet."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    test_event_ms: int | None = None
    withheld: Withheld | None = None


def require_agent(words: Sequence[str]) -> str:
    """The name of an agent. Accepts capitals, several words, and the name of its program."""
    every = f"known agents: {', '.join(AGENTS)}"
    said = "-".join("-".join(words).lower().replace("_", "-").split())
    for agent in every_agent():
        if said in (agent.name, *agent.spellings):
            return agent.name
    if len(words) != 1:
        raise UsageError("missing AGENT", hint=every)
    from holdfast.domain.search.words import distance

    near = [name for name in AGENTS if distance(said, name, _FARTHEST_SPELLING) is not None]
    hint = f"did you mean {near[0]}? {every}" if near else every
    raise UsageError(f"unknown agent: {words[0]!r}", hint=hint)


def install(
    name: str,
    scope: str,
    workspace: Path,
    *,
    with_skills: bool,
    with_mcp: bool,
    dry_run: bool,
) -> Installation:
    """The command is tested before anything is written, so that no broken hook is installed."""
    agent, at, program = agent_named(name), locations(workspace), our_program()
    if scope == "project":
        _require_project(agent, at.workspace)
    hooks = agent.hook_files(scope, at, program)
    places = [*hooks, *(skill_files(agent, scope, at) if with_skills else [])]
    if with_mcp:
        places = _joined(places, [_server_file(agent, scope, at, program)])
    changes = plan_install(agent, places, program)
    notes = tuple(_duplicate_event_warnings(agent, scope, at, program))
    if scope == "project":
        notes += tuple(_machine_path_warning(places[0].path, at.workspace, program))
    if dry_run:
        return Installation(tuple(changes), notes)
    took_ms = try_hook(name, program, workspace)
    if with_mcp and any(change.differs for change in changes):
        _try_server(program)
    apply_changes(changes, keep=(at.workspace, at.home))
    forget_removed(name, at.workspace)
    kept_back = _unwritable_store(at.workspace) or agent.withheld(scope, at, hooks[-1].path)
    return Installation(tuple(changes), notes, took_ms, kept_back)


def _unwritable_store(workspace: Path) -> Withheld | None:
    """Even working hooks protect nothing while no checkpoint can be made."""
    blocker = next((gap for gap in write_gaps(workspace) if gap.stops_saves), None)
    return None if blocker is None else Withheld(blocker.finding, blocker.cure)


def uninstall(name: str, scope: str, workspace: Path, *, dry_run: bool) -> Installation:
    agent, at = agent_named(name), locations(workspace)
    servers = [
        place for place in server_files(agent, scope, at, NAME) if has_server(place) is not False
    ]
    changes = plan_uninstall(agent, _joined(agent.hook_files(scope, at, NAME), servers))
    if not _shares_skills(agent, scope, at):
        changes += plan_uninstall(agent, skill_files(agent, scope, at))
    if not dry_run:
        apply_changes(changes, keep=(at.workspace, at.home))
        if any(change.differs for change in changes):
            note_removed(name, scope, at.workspace)
    found = tuple(change for change in changes if change.before is not None)
    notes = [_removal_hint(change) for change in found if change.kept]
    other = "user" if scope == "project" else "project"
    there = [
        place.path for place in agent.hook_files(other, at, NAME) if may_be_installed(agent, place)
    ]
    if there:
        remove = f"holdfast uninstall {name} --{other}"
        notes.append(f"{name} is still installed in {there[0]}; to remove it: {remove}")
    return Installation(found, tuple(notes))


def _joined(places: Sequence[SettingsFile], servers: Sequence[SettingsFile]) -> list[SettingsFile]:
    """Both lists; a file that is in both becomes one entry."""
    own = {place.path: place.server for place in servers}
    joined = [place._replace(server=own.pop(place.path, None)) for place in places]
    return joined + [place for place in servers if place.path in own]


def _server_file(agent: Agent, scope: str, at: Locations, program: str) -> SettingsFile:
    """The file that has Holdfast's server, else an existing file, else the usual one."""
    places = server_files(agent, scope, at, program)
    if not places:
        why, instead = agent.server_by_hand(program)
        raise Refused(why, hint=instead)
    there = [place for place in places if place.path.exists()]
    return next((place for place in there if has_server(place) is not False), [*there, *places][0])


def _removal_hint(change: FileChange) -> str:
    if change.shared:
        return f"some of {change.path} was kept: {change.kept}. Remove it by hand if necessary"
    return (
        f"{change.path} was kept: {change.kept}. Edit it by hand, or delete it: rm "
        f"{shlex.quote(str(change.path))}"
    )


def _require_project(agent: Agent, workspace: Path) -> None:
    """Project settings in the home directory would apply to all projects."""
    if (problem := why_no_project(workspace)) is not None:
        raise WorkspaceRefused(
            f"{workspace} {problem}; nothing was installed",
            hint=f"for all projects: holdfast install {agent.name} --user; "
            "for one project, change to its directory first",
        )


def _machine_path_warning(path: Path, workspace: Path, program: str) -> Iterator[str]:
    """Hooks with an absolute program path work only on this machine."""
    if not os.path.isabs(shlex.split(program)[0]):
        return
    try:
        looked = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "check-ignore", "-q", "--", str(path)],
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    if looked.returncode == 1:  # 1 is "not ignored"; higher is an error, such as no repository
        yield (
            f"{path} contains a path of this machine, and git would commit it. Exclude it in "
            ".git/info/exclude, or install with --user"
        )


def _duplicate_event_warnings(
    agent: Agent, scope: str, at: Locations, program: str
) -> Iterator[str]:
    """Warnings about hooks that deliver the same event twice. It is saved once, but costs twice the
    time."""
    for other in map(agent_named, agent.runs_hooks_of):
        for place in (p for s in SCOPES for p in other.hook_files(s, at, program)):
            if may_be_installed(other, place):
                yield f"{agent.name} also runs the hooks in {place.path}; each event counts once"
    elsewhere = "user" if scope == "project" else "project"
    for place in agent.hook_files(elsewhere, at, program)[:1]:
        if may_be_installed(agent, place):
            yield f"also installed in {place.path}; each event counts once"


def _shares_skills(agent: Agent, scope: str, at: Locations) -> bool:
    """Whether another installed agent uses the same skills."""
    own = agent.own_skills(scope, at)
    return any(
        other is not agent
        and other.own_skills(scope, at) == own
        and any(may_be_installed(other, place) for place in other.hook_files(scope, at, NAME))
        for other in every_agent()
    )


def try_hook(agent: str, program: str, workspace: Path) -> int:
    """Run the hook once as an agent would, with an event that requests nothing. Returns the
    milliseconds. Raises `Refused` if it does not answer."""
    event = {"hook_event_name": "Notification", "session_id": "installation"}
    began = time.monotonic()
    answer, said = _run(["sh", "-c", f"{program} hook {agent}"], json.dumps(event), workspace)
    try:
        sound = answer is not None and isinstance(json.loads(answer.strip() or "{}"), dict)
    except ValueError:
        sound = False
    if not sound:
        said = said.strip()[-_MOST_SAID:]
        raise Refused(
            f"the command {program!r} does not answer as a hook{f': {said}' if said else ''}; "
            "nothing was changed",
            hint="check that it runs: holdfast --version",
        )
    return round((time.monotonic() - began) * 1000)


def _try_server(program: str) -> None:
    """Start the server once as an agent would, in an empty directory. It exits at the end of its
    input."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as empty:
        answer, _ = _run([*shlex.split(program), "mcp", empty], "", Path(empty))
    if answer is None:
        raise Refused(
            f"the command '{program} mcp' does not start; nothing was changed",
            hint="its package may be missing: pip install mcp",
        )


def _run(command: Sequence[str], given: str, directory: Path) -> tuple[str | None, str]:
    """The standard output and standard error of a program in an agent's environment. The output is
    None if the program fails."""
    try:
        tried = subprocess.run(
            command,
            input=given.encode(),
            capture_output=True,
            cwd=directory,
            env=agents_environment(os.environ),
            timeout=_TRY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    answer, said = (text.decode("utf-8", "replace") for text in (tried.stdout, tried.stderr))
    return answer if tried.returncode == 0 else None, said
