"""Rounds of work and their approval as data."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NotRequired, TypedDict

from holdfast.api.views.checkpoints import SkippedView, skipped_view
from holdfast.domain.wording import iso_from_ns, remarks_in

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Skipped
    from holdfast.domain.sessions import Round
    from holdfast.engine.sessions.approval import ApprovalStatus, ApproveOutcome


class RoundView(TypedDict):
    """One round; `session_id` where rounds of several sessions are listed."""

    name: str
    status: str
    started_at: str
    ended_at: str | None
    approved: str | None
    message: str | None
    head: str | None
    session_id: NotRequired[str]


class ApprovalView(TypedDict):
    """The state of a session, in the words that dialog clients use."""

    active_session: str
    session_ref: str | None
    has_unapproved: bool
    last_approved_at: str | None
    approved: str | None
    checkpoints: int
    unsaved: bool | None


class ApprovedView(TypedDict):
    """A round that was approved, in the same words."""

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
    }
    if session_id is not None:
        view["session_id"] = session_id
    return view


def approval_view(status: "ApprovalStatus") -> ApprovalView:
    approved_at = status.last_approved_at_ns
    return {
        "active_session": status.active.name,
        "session_ref": status.base,
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
