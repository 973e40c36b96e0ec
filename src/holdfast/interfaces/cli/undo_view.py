"""What `undo` and `redo` say about the step that they take: whose it was, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.domain.operations import OperationKind
from holdfast.engine.undo_words import undone_words
from holdfast.interfaces.cli.external_choice import undo_or_redo
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import ago, iso
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.engine.undo import UndoStep
    from holdfast.interfaces.cli.invocation import Invocation


def undo_and_report(invocation: Invocation, opened: Workspace, step: UndoStep) -> int:
    from holdfast.interfaces.cli.restoring import restore_and_report

    words = undone_words(opened.engine.vault, step)
    request = step.request
    if request.kind is OperationKind.UNDO and step.undone is None:
        request = replace(request, note=words)
    for line in () if invocation.json else step.stays:
        invocation.terminal.warn(f"not restored: {visible(line)}")
    when = moment_of(step)
    told = words if when is None else f"{words} ({ago(when, invocation.now)})"
    also = {"undone": _as_json(step, words, when)}
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


def _as_json(step: UndoStep, words: str, when: datetime | None) -> dict[str, Any]:
    kind = "edits"
    if step.undone is not None:
        kind = step.undone.kind.value
    elif step.turn:
        kind = "turn"
    elif step.causes:
        kind = "tool_call"
    sessions = [one.session_id for one in step.causes]
    if step.undone is not None:
        sessions = [step.undone.session_id]
    return {
        "type": kind,
        "what": words,
        "at": None if when is None else iso(when),
        "sessions": sessions,
        "saved": step.saved.id if step.saved is not None else None,
        "not_restored": list(step.stays),
    }
