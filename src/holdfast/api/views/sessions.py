"""Sessions as data, with their rounds, guarded edits and attempts."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NotRequired, TypedDict

from holdfast.api.views.checkpoints import SkippedView, skipped_view
from holdfast.domain.paths import to_text
from holdfast.domain.wording import iso_from_ns, remarks_in

if TYPE_CHECKING:
    from holdfast.api.sessions import SessionSummary
    from holdfast.domain.checkpoints import Skipped
    from holdfast.domain.sessions import Round, Session, SessionStatus
    from holdfast.domain.story import Activity
    from holdfast.engine.retention.deletion import DeletedSession
    from holdfast.engine.sessions.approval import ApprovalStatus, ApproveOutcome


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
    active_session: str | None
    last_approved_at: str | None
    is_current: bool
    has_head: bool


class ChangedSessionView(TypedDict):
    """A session that was renamed, ended or archived."""

    id: str
    title: str | None
    status: str


class DeletedSessionView(TypedDict):
    """A deleted session, and the safety checkpoint of unsaved changes."""

    deleted: str
    checkpoints: int
    freed_bytes: int
    saved_first: str | None
    warnings: list[str]


def session_view(one: "SessionSummary") -> SessionView:
    approved_at = one.last_approved_at_ns
    return {
        "id": one.session.id,
        "title": one.session.title,
        "agent": one.session.agent,
        "status": one.status.value,
        "checkpoints": one.checkpoints,
        "unapproved": one.unapproved,
        "created_at": iso_from_ns(one.session.created_at_ns),
        "last_activity": iso_from_ns(one.last_activity_ns),
        "active_session": one.active_session,
        "last_approved_at": None if approved_at is None else iso_from_ns(approved_at),
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


class RoundView(TypedDict):
    """One round; `session_id` where rounds of several sessions are listed."""

    name: str
    status: str
    started_at: str
    ended_at: str | None
    approved: str | None
    message: str | None
    head: str | None
    checkpoints: int | None
    session_id: NotRequired[str]


class ApprovalView(TypedDict):
    """The approval state of a session, in the terms of dialog clients. `active_session` and
    `session_ref` are null when everything is approved."""

    active_session: str | None
    session_ref: str | None
    has_unapproved: bool
    last_approved_at: str | None
    approved: str | None
    checkpoints: int
    unsaved: bool | None


class ApprovedView(TypedDict):
    """An approved round, in the terms of dialog clients."""

    approved_commit: str
    new_session: str
    commits_approved: int
    approved_session: str
    saved: bool
    skipped: list[SkippedView]
    warnings: list[str]
    remarks: list[str]
    elapsed_ms: float


def round_view(one: "Round", session_id: str | None = None) -> RoundView:
    view: RoundView = {
        "name": one.name,
        "status": one.status.value,
        "started_at": iso_from_ns(one.started_at_ns),
        "ended_at": None if one.ended_at_ns is None else iso_from_ns(one.ended_at_ns),
        "approved": one.approved,
        "message": one.message,
        "head": one.head,
        "checkpoints": one.checkpoints,
    }
    if session_id is not None:
        view["session_id"] = session_id
    return view


def approval_view(status: "ApprovalStatus") -> ApprovalView:
    approved_at = status.last_approved_at_ns
    return {
        "active_session": status.active_session,
        "session_ref": status.session_ref,
        "has_unapproved": status.has_unapproved,
        "last_approved_at": None if approved_at is None else iso_from_ns(approved_at),
        "approved": status.approved,
        "checkpoints": status.checkpoints,
        "unsaved": status.unsaved,
    }


def approved_view(
    outcome: "ApproveOutcome", unread: "Iterable[Skipped]", elapsed_ms: float
) -> ApprovedView:
    """`unread` are paths that could not be read for the approved checkpoint."""
    return {
        "approved_commit": outcome.approved.id,
        "new_session": outcome.new_round,
        "commits_approved": outcome.count,
        "approved_session": outcome.merged,
        "saved": outcome.saved,
        "skipped": skipped_view(unread),
        "warnings": list(outcome.warnings),
        "remarks": remarks_in(outcome.warnings),
        "elapsed_ms": elapsed_ms,
    }


class AttemptView(TypedDict):
    """A command that ran as an attempt; it is `kept` if its exit `status` is 0."""

    attempt: int
    checkpoint: str
    session_id: str
    status: int
    kept: bool
    elapsed_ms: float


class KeptView(TypedDict):
    """An interrupted edit or attempt whose changes are kept."""

    number: int
    kind: str
    reason: str
    paths: list[str]


class KeptListView(TypedDict):
    kept: list[KeptView]


class InterruptedView(KeptView):
    """An edit or attempt whose process is gone. Restoring `checkpoint` rolls it back."""

    session_id: str
    checkpoint: str


def attempt_view(attempt: "Activity", status: int, elapsed_ms: float) -> AttemptView:
    return {
        "attempt": attempt.number,
        "checkpoint": attempt.checkpoint,
        "session_id": attempt.session_id,
        "status": status,
        "kept": status == 0,
        "elapsed_ms": elapsed_ms,
    }


def kept_view(activities: "Iterable[Activity]") -> KeptListView:
    return {"kept": [_kept(one) for one in activities]}


def _kept(one: "Activity") -> KeptView:
    return {
        "number": one.number,
        "kind": one.kind.value,
        "reason": one.reason,
        "paths": [to_text(path) for path in one.paths],
    }


def interrupted_view(one: "Activity") -> InterruptedView:
    return {
        "number": one.number,
        "session_id": one.session_id,
        "kind": one.kind.value,
        "reason": one.reason,
        "checkpoint": one.checkpoint,
        "paths": [to_text(path) for path in one.paths],
    }
