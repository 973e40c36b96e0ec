"""Returning the workspace to the checkpoint before a tool call that failed (AU-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.agent_events import AgentEvent, Reply

if TYPE_CHECKING:
    from holdfast.app.automation.event_dedupe import EventDedupe
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.sessions import Session


def restore_after_failure(
    opened: OpenWorkspace, event: AgentEvent, session: Session, dedupe: EventDedupe
) -> Reply:
    """Called with the lock held, after an event that reports a failed call."""
    why = f"to before {event.tool} failed ({event.failure})"
    target = dedupe.checkpoint_before(event)
    if target is None or opened.engine.vault.catalog.checkpoint(session.id, target) is None:
        target = checkpoint_by_intent(opened, event, session) or target
    if target is None:
        # A call that saves nothing has nothing to be rolled back either.
        return _not_restored(why) if event.tool_kind.changes_files else Reply()
    reply = restore_to(opened, session, target, why)
    dedupe.note(event, target, before=False)
    return reply


def restore_to(opened: OpenWorkspace, session: Session, target: str, why: str) -> Reply:
    """Called with the lock held; the answer tells the agent what came of it."""
    if opened.engine.vault.catalog.checkpoint(session.id, target) is None:
        return _not_restored(why)
    request = opened.engine.restore_request(session.id, target, only_changes=True)
    outcome = opened.engine.restore(request)
    if not outcome.steps:
        return Reply(target)
    one = outcome.files_changed == 1
    files = "1 file was" if one else f"{outcome.files_changed:,} files were"
    text = (
        f"Holdfast took the workspace back {why}: "
        f"{files} put back to checkpoint {target[:10]}. "
        "Read files again before you edit them. To have the failed state: holdfast undo"
    )
    return Reply(target, context=(text,))


def checkpoint_by_intent(opened: OpenWorkspace, event: AgentEvent, session: Session) -> str | None:
    """When the notes are lost: the checkpoint whose reason says that it was made before this
    call."""
    for found in opened.engine.vault.catalog.history(session.id, limit=20):
        same = event.tool_use_id is not None and found.tool_use_id == event.tool_use_id
        if same and found.intent.reasoning.startswith("Before "):
            return found.id
    return None


def _not_restored(why: str) -> Reply:
    text = (
        f"Holdfast could not take the workspace back {why}: that checkpoint is gone, and nothing "
        "was changed. Look at the files, or choose another checkpoint: holdfast log"
    )
    return Reply(context=(text,))
