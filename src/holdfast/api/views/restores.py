"""Restores as data: planned, carried out, and the step that an undo reverts."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NotRequired, TypedDict

from holdfast.api.views.changes import NumberedHunkView, numbered_hunk_view
from holdfast.api.views.checkpoints import ActiveAgentView, active_agent_view
from holdfast.api.views.git import GitDriftView, GitNowView, git_drift_view, git_now_view
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import count_steps
from holdfast.domain.wording import iso, remarks_in

if TYPE_CHECKING:
    from holdfast.api.sessions import ActiveAgent, ResetOutcome
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.diff.hunk_choice import NumberedHunk
    from holdfast.domain.git.drift import PresentGit
    from holdfast.domain.outcomes import PathProblem, RecoveredRestore, RestoreOutcome
    from holdfast.domain.restore.plan import (
        Blocked,
        ComponentOutcome,
        ComponentStep,
        Kept,
        Missing,
        RestorePlan,
        Step,
    )
    from holdfast.engine.undo.undo import UndoStep


class RecoveredView(TypedDict):
    """An interrupted restore that was finished or rolled back."""

    kind: str
    restored_to: str | None
    name: str | None
    rolled_back: bool
    files_changed: int
    overwritten: list[str]
    safety_checkpoint: str | None


def recovered_view(done: "RecoveredRestore") -> RecoveredView:
    return {
        "kind": done.kind.value,
        "restored_to": done.restored_to,
        "name": done.name,
        "rolled_back": done.rolled_back,
        "files_changed": done.files_changed,
        "overwritten": [to_text(path) for path in done.overwritten],
        "safety_checkpoint": done.safety,
    }


class StepView(TypedDict):
    """One path, and what a restore does to it."""

    type: str
    path: str


class PathReasonView(TypedDict):
    """A path and the reason why it is listed."""

    path: str
    reason: str


class RestoredComponentView(TypedDict):
    """State other than files. `status` and `detail` after a restore; `actions`, `blocked` and
    `choices` in a plan."""

    name: str
    mode: str
    status: NotRequired[str]
    detail: NotRequired[str]
    actions: NotRequired[list[str]]
    blocked: NotRequired[list[str]]
    choices: NotRequired[dict[str, str]]


class UndoneView(TypedDict):
    """The step that an undo or a redo takes."""

    type: str
    what: str
    at: str | None
    sessions: list[str]
    saved: str | None
    not_restored: list[str]


class StoppedAgentView(ActiveAgentView):
    """An agent that a restore asked to exit: `ended`, `running`, `not asked`, or in a plan
    `active`."""

    status: str


class RestoreView(TypedDict):
    """A restore, or with `dry_run` the plan of one. `reset_to`, `new_session` and `abandoned` come
    with a reset, `undone` with undo and redo, `hunks` with chosen hunks, `agents` with
    --stop-agents, `annotations` of the target with a plan."""

    restored_to: str
    safety_checkpoint: str | None
    operations: list[StepView]
    created: int
    restored: int
    deleted: int
    skipped: list[PathReasonView]
    conflicts: list[PathReasonView]
    verified: bool | None
    compared: int | None
    elapsed_ms: float
    kept: list[PathReasonView]
    missing: list[PathReasonView]
    warnings: list[str]
    remarks: list[str]
    components: list[RestoredComponentView]
    git: GitDriftView | None
    git_now: GitNowView | None
    dry_run: bool
    reset_to: NotRequired[str]
    new_session: NotRequired[str]
    abandoned: NotRequired[str | None]
    undone: NotRequired[UndoneView]
    hunks: NotRequired[list[NumberedHunkView]]
    agents: NotRequired[list[StoppedAgentView]]
    annotations: NotRequired[list[str]]


def restored_view(
    outcome: "RestoreOutcome",
    elapsed_ms: float,
    git_now: "PresentGit | None",
    working: Sequence[str] = (),
    *,
    reset: "ResetOutcome | None" = None,
    undone: UndoneView | None = None,
    hunks: "Sequence[NumberedHunk]" = (),
) -> RestoreView:
    """`working` warns of agents that were at work when it began."""
    counts = count_steps(outcome.steps)
    warnings = [*working, *outcome.warnings]
    view: RestoreView = {
        "restored_to": outcome.restored_to,
        "safety_checkpoint": outcome.safety if outcome.recorded else None,
        "operations": _steps(outcome.steps),
        "created": counts.created,
        "restored": counts.restored,
        "deleted": counts.deleted,
        "skipped": _reasons(outcome.skipped),
        "conflicts": _reasons(outcome.conflicts),
        "verified": outcome.verified,
        "compared": outcome.compared,
        "elapsed_ms": elapsed_ms,
        "kept": _reasons(outcome.kept),
        "missing": _reasons(outcome.missing),
        "warnings": warnings,
        "remarks": remarks_in(warnings),
        "components": [_restored_component(one) for one in outcome.components],
        "git": git_drift_view(outcome.git),
        "git_now": git_now_view(git_now),
        "dry_run": False,
    }
    _add_choice(view, undone, hunks)
    if reset is None:
        return view
    return {
        "reset_to": reset.reset_to,
        "new_session": reset.new_round,
        "abandoned": reset.abandoned,
        **view,
    }


def planned_view(
    target: "Checkpoint",
    plan: "RestorePlan",
    elapsed_ms: float,
    git_now: "PresentGit | None",
    *,
    best_effort: bool,
    abandoned: str | None = None,
    undone: UndoneView | None = None,
    hunks: "Sequence[NumberedHunk]" = (),
) -> RestoreView:
    """The plan of a restore; `abandoned` is the round that a reset ends."""
    counts = count_steps(plan.steps)
    blocked = _reasons(plan.blocked)
    view: RestoreView = {
        "restored_to": target.id,
        "safety_checkpoint": None,
        "operations": _steps(plan.steps),
        "created": counts.created,
        "restored": counts.restored,
        "deleted": counts.deleted,
        "skipped": blocked if best_effort else [],
        "conflicts": [] if best_effort else blocked,
        "verified": None,
        "compared": None,
        "elapsed_ms": elapsed_ms,
        "kept": _reasons(plan.kept),
        "missing": _reasons(plan.missing),
        "warnings": list(plan.warnings),
        "remarks": remarks_in(plan.warnings),
        "components": [_planned_component(one) for one in plan.components],
        "git": git_drift_view(plan.git),
        "git_now": git_now_view(git_now),
        "dry_run": True,
    }
    if plan.annotations:
        view["annotations"] = list(plan.annotations)
    if abandoned is not None:
        view["abandoned"] = abandoned
    _add_choice(view, undone, hunks)
    return view


def _add_choice(
    view: RestoreView, undone: UndoneView | None, hunks: "Sequence[NumberedHunk]"
) -> None:
    if undone is not None:
        view["undone"] = undone
    if hunks:
        view["hunks"] = [numbered_hunk_view(hunk) for hunk in hunks]


def stopped_agent_view(agent: "ActiveAgent", status: str) -> StoppedAgentView:
    return {**active_agent_view(agent), "status": status}


def undone_view(step: "UndoStep", words: str, when: datetime | None) -> UndoneView:
    """`words` describe the step to people."""
    kind = "edits"
    if step.undone is not None:
        kind = step.undone.kind.value
    elif step.turn:
        kind = "turn"
    elif step.causes:
        kind = "tool_call"
    sessions: list[str] = [one.session_id for one in step.causes]
    if step.undone is not None:
        sessions = [step.undone.session_id]
    elif step.turn:
        sessions = list(step.authors.sessions)
    return {
        "type": kind,
        "what": words,
        "at": None if when is None else iso(when),
        "sessions": sessions,
        "saved": step.saved.id if step.saved is not None else None,
        "not_restored": list(step.stays),
    }


def _steps(steps: "Iterable[Step]") -> list[StepView]:
    return [{"type": step.type.value, "path": to_text(step.path)} for step in steps]


def _reasons(found: "Iterable[PathProblem | Kept | Blocked | Missing]") -> list[PathReasonView]:
    return [{"path": to_text(one.path), "reason": one.reason} for one in found]


def _restored_component(one: "ComponentOutcome") -> RestoredComponentView:
    view: RestoredComponentView = {"name": one.name, "mode": one.mode, "status": one.status}
    if one.detail:
        view["detail"] = one.detail
    return view


def _planned_component(one: "ComponentStep") -> RestoredComponentView:
    view: RestoredComponentView = {
        "name": one.name,
        "mode": one.mode,
        "actions": list(one.actions),
        "blocked": list(one.blocked),
    }
    if one.choices:
        view["choices"] = dict(one.choices)
    return view
