"""Which directory an event is about: what the agent was opened on, or the project it stands in."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.domain.errors import WorkspaceMissing
from holdfast.interfaces.hooks.events import AgentEvent


def workspace_of(event: AgentEvent, standing_in: str = os.curdir) -> Path:
    """The workspace to save: one that has a store already, else the root of the project.

    An agent may stand in a directory below; what it was opened on is what has to be protected. It
    is so, too, while the agent stands in a directory that is nobody's project, such as /tmp.
    `standing_in` is the directory of the hook's process, which relative paths begin at.
    """
    standing = _directory(event.cwd, standing_in) or _directory(standing_in, os.curdir)
    project = _directory(event.project, standing_in)
    if project is not None and Path.home().resolve().is_relative_to(project):
        project = None  # an agent that was started at home, or above, says nothing by that
    if project is not None and (standing is None or standing.is_relative_to(project)):
        from holdfast.nested_projects import own_project

        opened_on = _known_above(project, or_itself=True) or project
        return own_project(opened_on, standing or project) or opened_on
    gone = None if standing is not None else _last_known(event.cwd)
    if gone is not None:
        return gone
    if standing is None:
        raise WorkspaceMissing(
            f"the directory {event.cwd or event.project} does not exist",
            hint="start the agent in an existing directory",
        )
    found = _known_above(standing) or _repository_of(standing)
    if found is None and project is not None:
        return _known_above(project, or_itself=True) or project
    return found or standing


def _directory(path: str | None, base: str) -> Path | None:
    if not path or "\0" in path:
        return None
    try:
        found = (Path(base) / Path(path).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return found if found.is_dir() else None


def _last_known(path: str | None) -> Path | None:
    """The workspace or the repository that a directory was in which is not there any more."""
    for above in Path(path).parents if path and os.path.isabs(path) else ():
        if (left := _directory(str(above), os.curdir)) is not None:
            return _known_above(left) or _repository_of(left)
    return None


def _known_above(directory: Path, *, or_itself: bool = False) -> Path | None:
    """The workspace with a store that a directory belongs to; `or_itself`: the directory, where
    that one leaves it out, even if it is no repository."""
    from holdfast.nested_projects import is_left_out, workspace_around

    found = workspace_around(directory)
    if found is None or found == directory or not or_itself:
        return found
    return directory if is_left_out(found, directory) else found


def _repository_of(directory: Path) -> Path | None:
    """The nearest directory upwards that git calls its own, unless that is the home directory."""
    home = Path.home()
    for above in (directory, *directory.parents):
        if above == home:
            return None
        if (above / ".git").exists():
            return above
    return None
