"""A replay in pages, for programs that show a slider. The workspace is never touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.views.changes import change_view
from holdfast.api.views.history import (
    component_lines_view,
    damaged_step_view,
    replay_message_view,
    replay_step_view,
)
from holdfast.domain.errors import HoldfastError, NotFound

if TYPE_CHECKING:
    from holdfast.api.history import Replay
    from holdfast.api.views.history import DamagedStepView, ReplayStepView
    from holdfast.api.views.pages import ReplayPageView
    from holdfast.api.workspace import Workspace
    from holdfast.domain.ids import SessionId


def replay_page(
    workspace: Workspace, session_id: SessionId, *, first: int, limit: int
) -> ReplayPageView:
    """Steps without their changes, which `replay_step` returns."""
    with _replay(workspace, session_id) as replay:
        total, position = len(replay.steps), replay.position
        head = _head(workspace, session_id)
        last = min(first + limit, total)
        steps: list[ReplayStepView | DamagedStepView] = []
        for index in range(first, last):
            try:
                replay.go_to(index)
                steps.append(replay_step_view(replay, head=head))
            except HoldfastError as error:
                steps.append(damaged_step_view(index, error))
    return {
        "session_id": session_id,
        "total": total,
        "position": position,
        "first": first,
        "steps": steps,
        "next": last if last < total else None,
    }


def replay_step(
    workspace: Workspace, session_id: SessionId, index: int
) -> ReplayStepView | DamagedStepView:
    """One step with its changes, components and messages."""
    with _replay(workspace, session_id) as replay:
        if index >= len(replay.steps):
            raise NotFound(f"the session has {len(replay.steps):,} steps")
        try:
            replay.go_to(index)
            view = replay_step_view(replay, head=_head(workspace, session_id))
        except HoldfastError as error:
            return damaged_step_view(index, error)
        try:
            view["changes"] = [change_view(change) for change in replay.changes()]
            view["components"] = component_lines_view(replay.components())
            view["messages"] = [replay_message_view(one) for one in replay.new_messages()]
        except HoldfastError as error:
            view["damage"] = error.to_dict()
    return view


def _replay(workspace: Workspace, session_id: SessionId) -> Replay:
    start = workspace.resolve(session_id, "HEAD")
    return workspace.history.replay(session_id, start, from_last_step=True)


def _head(workspace: Workspace, session_id: SessionId) -> str | None:
    found = workspace.head(session_id)
    return None if found is None else found.id
