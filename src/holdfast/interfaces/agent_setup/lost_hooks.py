"""Warnings about agents that a restore leaves without Holdfast's hooks.

Project settings of an agent are in the workspace. A restore is exact, so it may return them to
before `holdfast install`. The agent is then not protected, and the user has to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import fsencode
from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.errors import HoldfastError, Refused
from holdfast.domain.ids import short
from holdfast.domain.paths import to_text
from holdfast.values.classes import NamedTuple, replace

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.api.restores import RestoreRequest
    from holdfast.api.workspace import Workspace
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.domain.restore.plan import RestorePlan, Step
    from holdfast.domain.trees.entries import Entry
    from holdfast.interfaces.agents.agent import Agent, Locations, SettingsFile

_SCOPE = "project"
_Found = TypeVar("_Found", "RestorePlan", "RestoreOutcome")


def with_lost_hooks(opened: Workspace, found: _Found) -> _Found:
    """A plan or an outcome, with a warning for each agent that loses its protection."""
    said: tuple[str, ...] = tuple(
        f"{lost.agent} loses its Holdfast hooks in {lost.where} and is then not protected; to "
        f"install them again: holdfast install {lost.agent} --{_SCOPE}"
        for lost in _lost_hooks(opened, found)
    )
    return replace(found, warnings=(*found.warnings, *said)) if said else found


def require_hooks_kept(opened: Workspace, request: RestoreRequest) -> None:
    """For an undo without a question: `Refused` if an agent would lose its protection."""
    from holdfast.interfaces.agent_setup.protection import locations
    from holdfast.interfaces.agents import every_agent

    at = locations(opened.path)
    files = [place.path for agent in every_agent() for place in _project_files(agent, at)]
    if not any(path.is_relative_to(at.workspace) and path.exists() for path in files):
        return
    found = list(_lost_hooks(opened, opened.restores.plan(request)))
    if found:
        names = ", ".join(f"{lost.agent} in {lost.where}" for lost in found)
        commands = [f"holdfast uninstall {lost.agent} --{_SCOPE}" for lost in found]
        raise Refused(
            f"this would remove Holdfast's hooks of {names}, so nothing was undone",
            hint=f"to remove them: {'; '.join(commands)}; to undo the change anyway: holdfast "
            f"restore {short(request.target.id)} --yes",
        )


class _LostHooks(NamedTuple):
    agent: str
    where: str


def _project_files(agent: Agent, at: Locations) -> Sequence[SettingsFile]:
    from holdfast.interfaces.agent_setup.holdfast_command import NAME

    return agent.hook_files(_SCOPE, at, NAME)


def _lost_hooks(opened: Workspace, found: RestorePlan | RestoreOutcome) -> Iterator[_LostHooks]:
    if not found.steps:
        return
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.interfaces.agent_setup.protection import locations
    from holdfast.interfaces.agents import every_agent

    at = locations(opened.path)
    steps = {step.path: step for step in found.steps}
    for agent in every_agent():
        places = _project_files(agent, at)
        changed = [_step(at.workspace, place, steps) for place in places]
        if not any(changed):
            continue
        present = [_on_disk(place.path) for place in places]
        # The disk has one side of the restore, and the steps have the other.
        is_done = isinstance(found, RestoreOutcome)
        other = [
            text if step is None else _text(opened, step.before if is_done else step.after)
            for text, step in zip(present, changed, strict=True)
        ]
        before, after = (other, present) if is_done else (present, other)
        if not _has_hooks(agent, places, before) or _has_hooks(agent, places, after):
            continue
        if _is_protected_elsewhere(agent, opened.path):
            continue
        where = next(to_text(step.path) for step in changed if step is not None)
        yield _LostHooks(agent.name, where)


def _step(workspace: Path, place: SettingsFile, steps: dict[bytes, Step]) -> Step | None:
    if not place.path.is_relative_to(workspace):
        return None
    return steps.get(fsencode(place.path.relative_to(workspace)))


def _on_disk(path: Path) -> str | None:
    from holdfast.interfaces.agent_setup.settings_file import read_settings

    try:
        return read_settings(path)[0]
    except HoldfastError:  # the agent cannot read it either
        return None


def _text(opened: Workspace, entry: Entry | None) -> str | None:
    from holdfast.domain.trees.entries import FileEntry

    if not isinstance(entry, FileEntry):
        return None
    try:
        return b"".join(opened.contents.read(entry)).decode("utf-8", "replace")
    except HoldfastError:  # damaged, or not saved: the restore itself reports that
        return None


def _has_hooks(agent: Agent, places: Sequence[SettingsFile], texts: Sequence[str | None]) -> bool:
    from holdfast.interfaces.agent_setup.install_plan import contains_hooks

    for place, text in zip(places, texts, strict=True):
        try:
            if text is not None and contains_hooks(agent, place, text):
                return True
        except HoldfastError:  # an invalid file: the agent runs none of its hooks
            continue
    return False


def _is_protected_elsewhere(agent: Agent, workspace: Path) -> bool:
    from holdfast.interfaces.agent_setup.protection import protections

    return any(
        one.agent == agent.name and one.protected and one.scope != _SCOPE
        for one in protections(workspace)
    )
