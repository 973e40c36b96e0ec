"""Sessions as data."""

from typing import TYPE_CHECKING, TypedDict

from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from holdfast.api.sessions import SessionSummary
    from holdfast.domain.sessions import Session, SessionStatus
    from holdfast.engine.retention.deletion import DeletedSession


class SessionView(TypedDict):
    """One session in a list."""

    id: str
    title: str | None
    agent: str | None
    status: str
    checkpoints: int
    unapproved: int
    created_at: str
    last_activity: str
    is_current: bool
    has_head: bool


class ChangedSessionView(TypedDict):
    """A session that was renamed, ended or archived."""

    id: str
    title: str | None
    status: str


class DeletedSessionView(TypedDict):
    """A session that is gone, and the safety checkpoint of unsaved changes."""

    deleted: str
    checkpoints: int
    freed_bytes: int
    saved_first: str | None
    warnings: list[str]


def session_view(one: "SessionSummary") -> SessionView:
    return {
        "id": one.session.id,
        "title": one.session.title,
        "agent": one.session.agent,
        "status": one.status.value,
        "checkpoints": one.checkpoints,
        "unapproved": one.unapproved,
        "created_at": iso_from_ns(one.session.created_at_ns),
        "last_activity": iso_from_ns(one.last_activity_ns),
        "is_current": one.is_current,
        "has_head": one.has_head,
    }


def changed_session_view(session: "Session", status: "SessionStatus") -> ChangedSessionView:
    return {"id": session.id, "title": session.title, "status": status.value}


def deleted_session_view(outcome: "DeletedSession") -> DeletedSessionView:
    return {
        "deleted": outcome.session_id,
        "checkpoints": outcome.checkpoints,
        "freed_bytes": outcome.freed_bytes,
        "saved_first": outcome.saved_first,
        "warnings": list(outcome.warnings),
    }
