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
    from holdfast.bootstrap import nearest_workspace

    standing = _directory(event.cwd, standing_in) or _directory(standing_in, os.curdir)
    project = _directory(event.project, standing_in)
    if project is not None and Path.home().resolve().is_relative_to(project):
        project = None  # an agent that was started at home, or above, says nothing by that
    if project is not None and (standing is None or standing.is_relative_to(project)):
        return nearest_workspace(project) or project
    if standing is None:
        raise WorkspaceMissing(
            f"the directory {event.cwd or event.project} does not exist",
            hint="start the agent in an existing directory",
        )
    found = nearest_workspace(standing) or _repository_of(standing)
    if found is None and project is not None:
        return nearest_workspace(project) or project
    return found or standing


def _directory(path: str | None, base: str) -> Path | None:
    if not path or "\0" in path:
        return None
    try:
        found = (Path(base) / Path(path).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return found if found.is_dir() else None


def _repository_of(directory: Path) -> Path | None:
    """The nearest directory upwards that git calls its own, unless that is the home directory."""
    home = Path.home()
    for above in (directory, *directory.parents):
        if above == home:
            return None
        if (above / ".git").exists():
            return above
    return None
