"""What `undo` and `redo` share: the step in words, whose it was and when, and projects below."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import HoldfastError
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import typed
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import ago
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest, UndoStep
    from holdfast.api.workspace import Workspace
    from holdfast.interfaces.cli.invocation import Invocation

_MOST_BELOW = 5


def undo_and_report(invocation: Invocation, opened: Workspace, step: UndoStep) -> int:
    from holdfast.interfaces.cli.restore_dialog import restore_and_report

    words = opened.restores.undone_words(step)
    request = step.request
    if request.kind is OperationKind.UNDO and step.undone is None:
        request = replace(request, note=words)
    for line in () if invocation.json else step.stays:
        invocation.terminal.warn(f"not restored: {visible(line)}")
    when = step.at
    told = words if when is None else f"{words} ({ago(when, invocation.now)})"
    also = None
    if invocation.json:
        from holdfast.api.views.restores import undone_view

        also = {"undone": undone_view(step, words, when)}
    if step.undone is None:  # the plan shows files outside too, and one question is for all of it
        return restore_and_report(invocation, opened, request, what=told, also=also)
    return undo_or_redo(invocation, opened, request, told, also, steps_back=step.steps)


def undo_or_redo(
    invocation: Invocation,
    opened: Workspace,
    request: RestoreRequest,
    what: str | None = None,
    also: Mapping[str, Any] | None = None,
    *,
    steps_back: int = 1,
) -> int:
    """With those files outside the workspace that were agreed to, if it is about any. `what` is
    undone or redone, in words; `also` is told besides as JSON; `steps_back` of undo or redo lead
    back."""
    from holdfast.interfaces.cli.external_choice import EXTERNAL, choose_external
    from holdfast.interfaces.cli.restore_dialog import PARTIAL, restore_and_report

    incomplete = False
    if any(name == EXTERNAL for name, _ in request.components):
        request, incomplete = choose_external(invocation, opened, request)
    status = restore_and_report(
        invocation, opened, request, what=what, also=also, steps_back=steps_back
    )
    return status or (PARTIAL * incomplete)


def undo_commands_below(invocation: Invocation, opened: Workspace | None) -> list[str]:
    """Commands that undo in projects below the current directory that changed later, the latest
    first: an agent that works above several projects changes theirs. `opened` is the workspace
    here, if there is one."""
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
        for place in below[:_MOST_BELOW]
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
