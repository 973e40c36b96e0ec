"""The workspace that a directory belongs to, also where one lies in another.

    the nearest workspace with a store, upwards → does it leave the directory out? → what it leaves
    out on the way there, if that is a repository or a workspace of its own

A worktree or another repository often lies in a directory that the project around it ignores. A
checkpoint of the project would hold nothing of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.bootstrap import gather_settings, nearest_workspace, open_workspace, store_of
from holdfast.domain.errors import HoldfastError, NotFound
from holdfast.domain.settings import make_settings
from holdfast.engine.save import capture_policy
from holdfast.engine.scan.left_out import leaves_out
from holdfast.engine.scan.policy import CapturePolicy
from holdfast.store.local_filesystem import LocalFilesystem


def workspace_around(directory: Path) -> Path | None:
    """None where there is no store, here or above."""
    found = nearest_workspace(directory)
    return None if found is None else own_project(found, directory) or found


def own_project(workspace: Path, directory: Path) -> Path | None:
    """The repository or workspace, on the way down from `workspace` to the directory, that is saved
    by itself or not at all. `workspace` is without links in it."""
    directory = directory.expanduser().resolve()
    between = [above for above in (directory, *directory.parents) if workspace in above.parents]
    for place in reversed(between):
        ours = (place / ".git").exists() or store_of(place) is not None
        if ours and is_left_out(workspace, place):
            return own_project(place, directory) or place
    return None


def is_left_out(workspace: Path, directory: Path) -> bool:
    """By the rules and settings of the workspace as they are now. What cannot be told is not left
    out: whoever saves the workspace meets the same trouble, and reports it."""
    inside = os.fsencode(directory.relative_to(workspace))
    try:
        try:
            with open_workspace(workspace, create=False, passive=True) as opened:
                policy = capture_policy(opened.engine.vault)
        except NotFound:  # nothing was ever saved there
            settings = make_settings(gather_settings({}, workspace)[0])
            policy = CapturePolicy(settings, workspace)
        root_fd = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return leaves_out(LocalFilesystem(), policy, root_fd, inside)
        finally:
            os.close(root_fd)
    except (HoldfastError, OSError):
        return False
