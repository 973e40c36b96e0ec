"""What `undo` and `redo` say about the step that they take: whose it was, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.api.views.restores import undone_view
from holdfast.domain.operations import OperationKind
from holdfast.interfaces.cli.external_choice import undo_or_redo
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import ago
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.api.restores import UndoStep
    from holdfast.api.workspace import Workspace
    from holdfast.interfaces.cli.invocation import Invocation


def undo_and_report(invocation: Invocation, opened: Workspace, step: UndoStep) -> int:
    from holdfast.interfaces.cli.restoring import restore_and_report

    words = opened.restores.undone_words(step)
    request = step.request
    if request.kind is OperationKind.UNDO and step.undone is None:
        request = replace(request, note=words)
    for line in () if invocation.json else step.stays:
        invocation.terminal.warn(f"not restored: {visible(line)}")
    when = moment_of(step)
    told = words if when is None else f"{words} ({ago(when, invocation.now)})"
    also = {"undone": undone_view(step, words, when)}
    if step.undone is None:  # the plan shows files outside too, and one question is for all of it
        return restore_and_report(invocation, opened, request, what=told, also=also)
    return undo_or_redo(invocation, opened, request, told, also, steps_back=step.steps)


def moment_of(step: UndoStep) -> datetime | None:
    """When it happened, as far as that is known."""
    at_ns = None
    if step.undone is not None:
        at_ns = step.undone.at_ns
    elif step.causes:
        at_ns = step.causes[0].at_ns
    elif step.saved is not None:
        at_ns = step.saved.created_at_ns
    return None if at_ns is None else datetime.fromtimestamp(at_ns / 1e9, tz=UTC)
