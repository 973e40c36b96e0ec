"""Restores and rounds for HTTP clients: rollback plans, and dialogs with approval."""

from typing import TYPE_CHECKING, TypedDict

from holdfast.api.views.restores import RestoreView
from holdfast.domain.paths import to_text
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.api.restores import ChangedRows, LastChange
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.domain.restore.plan import Step
    from holdfast.engine.sessions.approval import ApprovalStatus, ApproveOutcome, ResetOutcome


class LastChangeView(TypedDict):
    """Who changed a file last: `agent`, with its session; `person`; `restore`; or `unsaved` if no
    checkpoint has the change yet. `at` is the time of the first checkpoint with the change."""

    path: str
    by: str
    session_id: str | None
    agent: str | None
    at: str | None


class ChangedRowsView(TypedDict):
    """Rows by table of a SQLite database that a restore rewrites; null if they cannot be counted,
    or if there is no such database."""

    path: str
    now: dict[str, int] | None
    then: dict[str, int] | None


class RollbackView(RestoreView):
    """A restore, or with `dry_run` its plan. Send a preview's `plan` with the restore; the restore
    is refused if its plan would now differ. `working` are agents in the middle of a tool call.
    `last_changes` names who changed each file of a plan last, and `databases` has the row counts of
    its SQLite databases, now and at the checkpoint."""

    checkpoint_id: str
    affected_files: list[str]
    new_checkpoint: str | None
    plan: str | None
    working: list[str]
    last_changes: list[LastChangeView]
    databases: list[ChangedRowsView]


class DialogSessionView(TypedDict):
    """The round of a dialog, and its name as a reference; both are null when everything is
    approved."""

    active_session: str | None
    session_ref: str | None
    has_unapproved: bool
    last_approved_at: str | None


class DialogApprovedView(TypedDict):
    """A round that was approved."""

    approved_commit: str
    new_session: str
    commits_approved: int


class DialogResetView(TypedDict):
    """A dialog that was reset to its last approval."""

    reset_to: str
    new_session: str


class DialogRestoredView(TypedDict):
    """A dialog that was restored to a checkpoint; `new_checkpoint` records the restore."""

    restored_to: str
    new_checkpoint: str


def rollback_view(
    view: RestoreView,
    steps: "Sequence[Step]",
    *,
    new_checkpoint: str | None = None,
    plan: str | None = None,
    working: "Sequence[str]" = (),
    last_changes: "Sequence[LastChange]" = (),
    databases: "Sequence[ChangedRows]" = (),
) -> RollbackView:
    return {
        **view,
        "checkpoint_id": view["restored_to"],
        "affected_files": [
            to_text(step.path)
            for step in steps
            if not isinstance(step.after or step.before, DirectoryEntry)
        ],
        "new_checkpoint": new_checkpoint,
        "plan": plan,
        "working": list(working),
        "last_changes": [_last_change(one) for one in last_changes],
        "databases": [_changed_rows(one) for one in databases],
    }


def _changed_rows(one: "ChangedRows") -> ChangedRowsView:
    return {
        "path": to_text(one.path),
        "now": None if one.now is None else dict(one.now),
        "then": None if one.then is None else dict(one.then),
    }


def _last_change(one: "LastChange") -> LastChangeView:
    return {
        "path": to_text(one.path),
        "by": one.author.value,
        "session_id": one.session_id,
        "agent": one.agent,
        "at": None if one.at_ns is None else iso_from_ns(one.at_ns),
    }


def dialog_session_view(status: "ApprovalStatus") -> DialogSessionView:
    from holdfast.api.views.sessions import approval_view

    view = approval_view(status)
    active = view["active_session"]
    return {
        "active_session": active,
        "session_ref": None if active is None else f"refs/heads/{active}",
        "has_unapproved": view["has_unapproved"],
        "last_approved_at": view["last_approved_at"],
    }


def dialog_approved_view(outcome: "ApproveOutcome") -> DialogApprovedView:
    return {
        "approved_commit": outcome.approved.id,
        "new_session": outcome.new_round,
        "commits_approved": outcome.count,
    }


def dialog_reset_view(outcome: "ResetOutcome") -> DialogResetView:
    return {"reset_to": outcome.reset_to, "new_session": outcome.new_round}


def dialog_restored_view(outcome: "RestoreOutcome") -> DialogRestoredView:
    return {"restored_to": outcome.restored_to, "new_checkpoint": outcome.record}
