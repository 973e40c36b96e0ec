"""States of a session as tests ask for them: one that exists, and the end of its line."""

from __future__ import annotations

from holdfast import SessionCheckpointer, WorkspaceSnapshot
from holdfast.domain.ids import CheckpointId, SessionId


def get_snapshot(session: SessionCheckpointer, reference: str) -> WorkspaceSnapshot:
    """The checkpoint that a reference means, which must exist."""
    found = session.get(reference)
    assert found is not None, f"there is no checkpoint {reference}"
    return found


def line_end(session: SessionCheckpointer) -> CheckpointId | None:
    """The newest state: a checkpoint, or the record of a restore."""
    found = session.opened.sessions.get(SessionId(session.session_id))
    return found.head if found else None
