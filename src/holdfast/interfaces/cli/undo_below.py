"""Projects below the current directory that changed later: an agent that works above several
projects changes theirs, and `undo` here would not find it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError
from holdfast.domain.paths import typed

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.interfaces.cli.invocation import Invocation

_MOST = 5


def undo_commands_below(invocation: Invocation, opened: Workspace | None) -> list[str]:
    """The commands that undo there, the latest change first. `opened` is the workspace here, None
    where there is none."""
    from holdfast.api.stores import recent_workspaces

    here = invocation.directory.expanduser().resolve()
    since_ns = 0 if opened is None else opened.restores.newest_operation_ns()
    below = [
        place
        for place, used_ns in recent_workspaces()
        if here in place.parents and used_ns > since_ns
    ]
    return [
        f"holdfast -C {typed(os.fsencode(os.path.relpath(place, here)))} undo"
        for place in below[:_MOST]
        if _has_something(invocation, place)
    ]


def _has_something(invocation: Invocation, workspace: Path) -> bool:
    from holdfast.api.workspace import open_workspace

    try:
        with open_workspace(
            workspace, create=False, force=invocation.options.force, passive=True
        ) as opened:
            opened.restores.last_step()
    except (HoldfastError, OSError):
        return False  # nothing, or it cannot be told from here
    return True
