"""Installation changes planned as data: every file is read once, then all new texts are planned or
the whole installation is refused.

Guarantees: an invalid or foreign file is refused. Holdfast files and commands that the user has
edited belong to the user: recognisable Holdfast parts are removed, and the rest is kept and listed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.domain.errors import HoldfastError, Refused
from holdfast.interfaces.agent_setup.holdfast_command import NAME
from holdfast.interfaces.agent_setup.hooks_edit import (
    edited_commands,
    hook_program,
    with_hooks,
    without_hooks,
)
from holdfast.interfaces.agent_setup.json_text import NotJson
from holdfast.interfaces.agent_setup.mcp_server_edit import (
    NotOurs,
    found_server,
    is_our_entry,
    program_of,
    with_server,
    without_server,
)
from holdfast.interfaces.agent_setup.settings_file import FileChange, NotToml, read_settings
from holdfast.interfaces.agent_setup.shipped_files import is_untouched, names_us
from holdfast.interfaces.agents.agent import Agent, SettingsFile
from holdfast.values.classes import replace

_EDITED = "it was edited after Holdfast wrote it, so it may contain your changes"


def plan_install(agent: Agent, places: Iterable[SettingsFile], program: str) -> list[FileChange]:
    changes = []
    for place in places:
        before, status = read_settings(place.path)
        after = _installed(agent, place, before, program)
        changes.append(_planned(place, before, status, after))
    return changes


def plan_uninstall(agent: Agent, places: Sequence[SettingsFile]) -> list[FileChange]:
    found = {}
    for place in places:
        before, status = read_settings(place.path)
        left = _uninstalled(agent, place, before)
        found[place.path] = _planned(place, before, status, *left)
    for path in (place.path for place in places if place.manifest):
        going = [change.path for change in found.values() if change.after is None]
        if found[path].word == "removed" and (others := _remaining_files(path, going)):
            why = f"{others[0]} uses the same plug-in and needs it"
            found[path] = replace(found[path], after=found[path].before, kept=why)
    return list(found.values())


def _remaining_files(manifest: Path, going: Sequence[Path]) -> list[Path]:
    """The files in the manifest's directory that stay."""
    inside = (Path(top, name) for top, _, names in os.walk(manifest.parent) for name in names)
    return sorted(path for path in inside if path not in going)


def is_installed(agent: Agent, place: SettingsFile) -> bool:
    """Whether a file contains anything from Holdfast, of any version. Raises `Refused` if the file
    is damaged and mentions Holdfast."""
    before, _ = read_settings(place.path)
    return before is not None and contains_hooks(agent, place, before)


def contains_hooks(agent: Agent, place: SettingsFile, text: str) -> bool:
    """Like `is_installed`, for a file with this text."""
    if place.content is not None:
        return names_us(text, agent.own_file_marks)
    try:
        return without_hooks(text, agent.name, version=place.versioned) != text
    except NotJson as error:
        if f"hook {agent.name}" in text:
            raise _invalid(place, error) from None
        return False  # not Holdfast's file, so not its problem


def installed_program(agent: Agent, places: Sequence[SettingsFile]) -> str | None:
    """The words by which the installed hooks call Holdfast; None if there are none. Raises as
    `is_installed`."""
    for place in places:
        if not is_installed(agent, place):
            continue
        text = read_settings(place.path)[0] or ""
        ours = place.content is not None
        found = agent.program_in(text) if ours else hook_program(text, agent.name)
        if found is not None:
            return found
    return None


def has_server(place: SettingsFile) -> bool | None:
    """Whether a file has Holdfast's MCP server, of any version; None if another entry has its name.
    Raises as `is_installed`."""
    before, _ = read_settings(place.path)
    if before is None or place.server is None or NAME not in before:
        return False  # do not parse it: such a file can be large
    try:
        found = found_server(before, place.server)
    except (NotJson, NotToml) as error:
        if place.server.table in before:
            raise _invalid(place, error) from None
        return False
    if found is None:
        return False
    return True if is_our_entry(found, place.server) else None


def server_program(place: SettingsFile) -> str:
    """The words by which an existing server entry calls Holdfast."""
    before, _ = read_settings(place.path)
    if before is None or place.server is None:
        raise ValueError(f"no server in {place.path}")
    return program_of(found_server(before, place.server))


def may_be_installed(agent: Agent, place: SettingsFile) -> bool:
    """Like `is_installed`, but True for an unreadable file."""
    try:
        return is_installed(agent, place)
    except HoldfastError:
        return True


def _planned(
    place: SettingsFile,
    before: str | None,
    status: os.stat_result | None,
    after: str | None,
    kept: str | None = None,
) -> FileChange:
    mode = 0o755 if place.executable else 0o644
    if status is not None and not place.executable:
        mode = stat.S_IMODE(status.st_mode)
    owner = None if status is None else (status.st_uid, status.st_gid)
    stuck = place.executable and status is not None and not status.st_mode & stat.S_IXUSR
    remodelled = bool(stuck and after is not None)
    target = Path(os.path.realpath(place.path))
    shared = place.content is None
    return FileChange(place.path, target, before, after, mode, owner, remodelled, kept, shared)


def _installed(agent: Agent, place: SettingsFile, before: str | None, program: str) -> str:
    if place.content is not None:
        return _own_file(agent, place, place.content, before, program)
    after = before
    try:
        if place.hooks:
            entries = agent.hook_entries(program)
            after = with_hooks(after, agent.name, entries, version=place.versioned)
        if place.server is not None:
            after = with_server(after, place.server)
    except (NotJson, NotToml) as error:
        raise _invalid(place, error) from None
    except NotOurs as error:
        raise Refused(
            f"{place.path} was not edited: {error}",
            hint="remove or rename the entry, or install without --mcp",
        ) from None
    return after or ""


def _own_file(
    agent: Agent, place: SettingsFile, content: str, before: str | None, program: str
) -> str:
    if before is None or is_untouched(before, content):
        return content
    rest = agent.without_own_lines(before)
    if rest is not None and content.splitlines()[-1] in before.splitlines():
        return before if rest else content
    edited = names_us(before, agent.own_file_marks)
    whose = "was edited after Holdfast wrote it" if edited else "already exists"
    raise Refused(
        f"{place.path} {whose} and is not only Holdfast's",
        hint=f"move it elsewhere, or call this from it: {program} hook {agent.name}",
    )


def _uninstalled(
    agent: Agent, place: SettingsFile, before: str | None
) -> tuple[str | None, str | None]:
    """The remaining text, and why it still contains something from Holdfast, if it does."""
    if before is None:
        return None, None
    if place.content is None:
        return _without_entries(agent, place, before)
    if is_untouched(before, place.content):
        return None, None
    rest = agent.without_own_lines(before)
    if rest is not None:
        return rest or None, None
    return before, _EDITED if names_us(before, agent.own_file_marks) else None


def _without_entries(
    agent: Agent, place: SettingsFile, before: str
) -> tuple[str | None, str | None]:
    left: str | None = before
    kept = None
    try:
        if place.server is not None:
            try:
                left = without_server(before, place.server)
            except NotOurs as error:
                kept = str(error)
        if place.hooks and left is not None:
            left = without_hooks(left, agent.name, version=place.versioned)
            edited = edited_commands(left, agent.name) if left is not None else []
            if edited:
                kept = f"the command {edited[0]!a} was edited, or is not from Holdfast"
    except (NotJson, NotToml) as error:
        raise _invalid(place, error) from None
    return left, kept


def _invalid(place: SettingsFile, error: NotJson | NotToml) -> Refused:
    return Refused(
        f"{place.path} is not valid: {error}", hint="fix the file first; nothing was changed"
    )
