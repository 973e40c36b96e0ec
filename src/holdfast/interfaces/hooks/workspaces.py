"""Which directory an event is about: what the agent was opened on, or the project it stands in.

    a workspace with a store, upwards from there → does it leave that place out? → the place itself

A worktree or another repository often lies in a directory that the project around it ignores. A
checkpoint of the project would hold nothing of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.domain.errors import HoldfastError, NotFound, WorkspaceMissing
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
        opened_on = _known_above(project, or_itself=True) or project
        return _left_out_of(opened_on, standing or project) or opened_on
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
    from holdfast.bootstrap import nearest_workspace

    found = nearest_workspace(directory)
    if found is None or found == directory:
        return found
    own = _left_out_of(found, directory)
    if own is None and or_itself and _is_left_out(found, directory):
        return directory
    return own or found


def _left_out_of(workspace: Path, directory: Path) -> Path | None:
    """The outermost repository or workspace, on the way down to the directory, of which nothing is
    saved with the workspace."""
    from holdfast.bootstrap import store_of

    between = [above for above in (directory, *directory.parents) if workspace in above.parents]
    for place in reversed(between):
        ours = (place / ".git").exists() or store_of(place) is not None
        if ours and _is_left_out(workspace, place):
            return place
    return None


def _is_left_out(workspace: Path, directory: Path) -> bool:
    """By the rules and settings of the workspace as they are now. What cannot be told is not left
    out: whoever saves the workspace meets the same trouble, and reports it."""
    from holdfast.bootstrap import gather_settings, open_workspace
    from holdfast.domain.settings import make_settings
    from holdfast.engine.save import capture_policy
    from holdfast.engine.scan.left_out import leaves_out
    from holdfast.engine.scan.policy import CapturePolicy
    from holdfast.store.local_filesystem import LocalFilesystem

    inside = os.fsencode(directory.relative_to(workspace))
    try:
        try:
            with open_workspace(workspace, create=False, passive=True) as opened:
                policy = capture_policy(opened.engine.vault)
        except NotFound:  # the first event of all
            settings = make_settings(gather_settings({}, workspace)[0])
            policy = CapturePolicy(settings, workspace)
        root_fd = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return leaves_out(LocalFilesystem(), policy, root_fd, inside)
        finally:
            os.close(root_fd)
    except (HoldfastError, OSError):
        return False


def _repository_of(directory: Path) -> Path | None:
    """The nearest directory upwards that git calls its own, unless that is the home directory."""
    home = Path.home()
    for above in (directory, *directory.parents):
        if above == home:
            return None
        if (above / ".git").exists():
            return above
    return None
