"""Restores: preview, restore, undo and redo; rounds, dialogs, and git commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import Body, Query
from pydantic import Field
from starlette.requests import Request

from holdfast.api.views.git import AcceptView, accept_view
from holdfast.api.views.restores import UndoneView, planned_view, restored_view, undone_view
from holdfast.api.views.rollbacks import (
    RollbackView,
    rollback_view,
)
from holdfast.api.views.sessions import ApprovalView, ApprovedView, approval_view, approved_view
from holdfast.api.workspace import Workspace
from holdfast.domain.errors import Refused
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import OperationKind
from holdfast.interfaces.agent_setup.lost_hooks import require_hooks_kept, with_lost_hooks
from holdfast.interfaces.tools.restore_result import fingerprint
from holdfast.interfaces.web.operations import LATER, run_long
from holdfast.interfaces.web.parameters import Reference, RequestBody, SessionParameter
from holdfast.interfaces.web.routing import (
    Answer,
    Route,
    checked_path,
    elapsed_ms,
    known_session,
    served,
    server_of,
)

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest


class RollbackBody(RequestBody):
    """What to restore: everything, some `paths`, or some `hunks` of one file. With the `plan` of a
    preview, the restore is refused if its plan would differ. `components` sets how state other than
    files is restored."""

    paths: list[str] = Field(default=[], max_length=10_000)
    hunks: list[int | str] = Field(default=[], max_length=10_000)
    context: int = Field(default=3, ge=0, le=100)
    best_effort: bool = False
    components: dict[str, str] = Field(default={}, max_length=100)
    include: list[str] = Field(default=[], max_length=100)
    exclude: list[str] = Field(default=[], max_length=100)
    plan: str | None = Field(default=None, max_length=200)


class UndoBody(RequestBody):
    """With `dry_run`, nothing is changed. `turn` undoes everything since the last message."""

    dry_run: bool = False
    turn: bool = False
    plan: str | None = Field(default=None, max_length=200)


class StepBody(RequestBody):
    """With `dry_run`, nothing is changed."""

    dry_run: bool = False
    plan: str | None = Field(default=None, max_length=200)


class ApproveBody(RequestBody):
    """Why the round is approved."""

    message: str | None = Field(default=None, max_length=100_000)


class AcceptBody(RequestBody):
    """A range of checkpoints, `A..B`, and the commit message; both are optional. With `dry_run`,
    nothing is committed."""

    checkpoints: str | None = Field(default=None, max_length=1000)
    message: str | None = Field(default=None, min_length=1, max_length=100_000)
    co_authors: list[str] = Field(default=[], max_length=100)
    dry_run: bool = False


_Paths = Annotated[list[str] | None, Query(max_length=1000, description="Only these paths.")]


def preview_rollback(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference, path: _Paths = None
) -> RollbackView:
    with served(request) as workspace:
        session = known_session(workspace, session_id)
        wanted = _request(workspace, session, checkpoint_id, RollbackBody(paths=path or []))
        return _preview(request, workspace, wanted)


def preview_chosen(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference, body: RollbackBody
) -> RollbackView:
    with served(request) as workspace:
        session = known_session(workspace, session_id)
        return _preview(request, workspace, _request(workspace, session, checkpoint_id, body))


def rollback(
    request: Request,
    session_id: SessionParameter,
    checkpoint_id: Reference,
    body: Annotated[RollbackBody | None, Body()] = None,
) -> Answer:
    chosen = body or RollbackBody()

    def work(workspace: Workspace) -> Answer:
        session = known_session(workspace, session_id)
        wanted = _request(workspace, session, checkpoint_id, chosen)
        return Answer(_carry_out(request, workspace, lambda: wanted, chosen.plan))

    return run_long(request, "restore", work)


def undo_in_session(
    request: Request,
    session_id: SessionParameter,
    body: Annotated[StepBody | None, Body()] = None,
) -> Answer:
    return _step(request, session_id, body, redo=False)


def redo_in_session(
    request: Request,
    session_id: SessionParameter,
    body: Annotated[StepBody | None, Body()] = None,
) -> Answer:
    return _step(request, session_id, body, redo=True)


def _step(request: Request, session_id: str, body: StepBody | None, *, redo: bool) -> Answer:
    chosen = body or StepBody()

    def work(workspace: Workspace) -> Answer:
        session, restores = known_session(workspace, session_id), workspace.restores
        find = restores.redo_request if redo else restores.undo_request
        if chosen.dry_run:
            return Answer(_preview(request, workspace, find(session)))
        return Answer(_carry_out(request, workspace, lambda: find(session), chosen.plan))

    return run_long(request, "redo" if redo else "undo", work)


def undo_last(request: Request, body: Annotated[UndoBody | None, Body()] = None) -> Answer:
    chosen = body or UndoBody()

    def work(workspace: Workspace) -> Answer:
        step = workspace.restores.last_step(turn=chosen.turn)
        words = workspace.restores.undone_words(step)
        if step.loss is not None and not chosen.dry_run:
            raise Refused(
                f"{workspace.restores.loss_words(step.loss)}, so nothing was undone",
                hint="restore the checkpoint before it instead",
            )
        undone = undone_view(step, words, step.at)
        if chosen.dry_run:
            return Answer(_preview(request, workspace, step.request, undone))
        if chosen.plan is None:  # no preview has named the agents that lose their hooks
            require_hooks_kept(workspace, step.request)
        return Answer(
            _carry_out(request, workspace, lambda: step.request, chosen.plan, undone=undone)
        )

    return run_long(request, "undo", work)


def redo_last(request: Request, body: Annotated[StepBody | None, Body()] = None) -> Answer:
    chosen = body or StepBody()

    def work(workspace: Workspace) -> Answer:
        step = workspace.restores.next_step()
        undone = undone_view(step, workspace.restores.undone_words(step), step.at)
        if chosen.dry_run:
            return Answer(_preview(request, workspace, step.request, undone))
        return Answer(
            _carry_out(request, workspace, lambda: step.request, chosen.plan, undone=undone)
        )

    return run_long(request, "redo", work)


def _request(
    workspace: Workspace, session: SessionId, reference: str, body: RollbackBody
) -> RestoreRequest:
    wanted = workspace.restores.request(
        session,
        reference,
        paths=[checked_path(path) for path in body.paths],
        best_effort=body.best_effort,
        components=body.components,
        include=body.include,
        exclude=body.exclude,
    )
    if not body.hunks:
        return wanted
    present = workspace.restores.look(wanted.target)
    return present.choose_hunks(wanted, body.hunks, context=body.context)


def _preview(
    request: Request,
    workspace: Workspace,
    wanted: RestoreRequest,
    undone: UndoneView | None = None,
) -> RollbackView:
    restores = workspace.restores
    plan = restores.plan(wanted)
    abandoned = None
    if wanted.kind is OperationKind.RESET:
        abandoned = workspace.rounds.abandoned_by(wanted, plan)
    with server_of(request).telemetry.git("status"):
        git_now = restores.git_now()
    view = planned_view(
        wanted.target,
        with_lost_hooks(workspace, plan),
        elapsed_ms(request),
        git_now,
        best_effort=wanted.best_effort,
        abandoned=abandoned,
        undone=undone,
    )
    working = restores.working_agents(wanted)
    return rollback_view(
        view,
        plan.steps,
        plan=fingerprint(plan).hex(),
        working=working,
        last_changes=restores.last_changes(wanted, plan),
        databases=restores.changed_rows(plan),
    )


def _carry_out(
    request: Request,
    workspace: Workspace,
    find: Callable[[], RestoreRequest],
    expected: str | None,
    *,
    undone: UndoneView | None = None,
) -> RollbackView:
    restores = workspace.restores
    wanted = find()

    def agreed() -> RestoreRequest:
        """Called with the store's lock held, so that no other restore can intervene."""
        found = find()
        if expected is not None and fingerprint(restores.plan(found)).hex() != expected:
            raise Refused(
                "the workspace has changed since the preview, so nothing was restored",
                hint="look at the preview again",
            )
        return found

    working = restores.working_agents(wanted)
    telemetry = server_of(request).telemetry
    with telemetry.restore(wanted.kind.value, wanted.session_id) as span:
        outcome = with_lost_hooks(workspace, restores.restore(agreed))
        span.update(checkpoint=outcome.restored_to, files=outcome.files_changed)
    reset = None
    if wanted.kind is OperationKind.RESET:
        reset = workspace.rounds.reset_outcome(wanted.session_id, outcome)
    view = restored_view(
        outcome,
        elapsed_ms(request),
        restores.git_now(outcome),
        working,
        reset=reset,
        undone=undone,
    )
    made = outcome.record if outcome.recorded else None
    return rollback_view(view, outcome.steps, new_checkpoint=made, working=working)


def show_approval(request: Request, session_id: SessionParameter) -> ApprovalView:
    with served(request) as workspace:
        session = known_session(workspace, session_id)
        return approval_view(workspace.rounds.status(session, look=True))


def approve(
    request: Request,
    session_id: SessionParameter,
    body: Annotated[ApproveBody | None, Body()] = None,
) -> Answer:
    message = None if body is None else body.message

    def work(workspace: Workspace) -> Answer:
        outcome = workspace.rounds.approve(known_session(workspace, session_id), message)
        skipped = workspace.contents.skipped(outcome.approved) if outcome.saved else []
        unread = [one for one in skipped if one.reason.is_failure]
        return Answer(approved_view(outcome, unread, elapsed_ms(request)))

    return run_long(request, "approve", work)


def preview_reset(request: Request, session_id: SessionParameter) -> RollbackView:
    with served(request) as workspace:
        session = known_session(workspace, session_id)
        return _preview(request, workspace, workspace.rounds.reset_request(session))


def reset(
    request: Request,
    session_id: SessionParameter,
    body: Annotated[StepBody | None, Body()] = None,
) -> Answer:
    chosen = body or StepBody()

    def work(workspace: Workspace) -> Answer:
        session = known_session(workspace, session_id)

        def find() -> RestoreRequest:
            return workspace.rounds.reset_request(session)

        if chosen.dry_run:
            return Answer(_preview(request, workspace, find()))
        return Answer(_carry_out(request, workspace, find, chosen.plan))

    return run_long(request, "reset", work)


def accept(
    request: Request,
    session_id: SessionParameter,
    body: Annotated[AcceptBody | None, Body()] = None,
) -> Answer:
    from holdfast.api.exchange import CommitWish

    chosen = body or AcceptBody()

    def work(workspace: Workspace) -> Answer:
        prepared = workspace.git.prepare(
            known_session(workspace, session_id),
            chosen.checkpoints,
            message=chosen.message,
            co_authors=chosen.co_authors,
        )
        if chosen.dry_run:
            outcome = workspace.git.preview(prepared)
        else:
            with server_of(request).telemetry.git("accept"):
                outcome = workspace.git.commit(prepared, CommitWish(prepared.message, edit=False))
        return Answer(accept_view(prepared.range, outcome, elapsed_ms(request)))

    return run_long(request, "accept", work)


_SESSION = "/api/sessions/{session_id}"
_ONE = f"{_SESSION}/checkpoints/{{checkpoint_id}}"


def _restore(path: str, endpoint: Callable[..., object], summary: str) -> Route:
    return Route(
        "POST",
        path,
        endpoint,
        RollbackView,
        summary,
        "restore",
        tag="restores",
        other_answers=LATER,
    )


ROUTES = (
    Route(
        "GET",
        f"{_ONE}/rollback/preview",
        preview_rollback,
        RollbackView,
        "Preview a restore",
        tag="restores",
        looks=True,
    ),
    Route(
        "POST",
        f"{_ONE}/rollback/preview",
        preview_chosen,
        RollbackView,
        "Preview a restore of chosen parts",
        tag="restores",
    ),
    _restore(f"{_ONE}/rollback", rollback, "Restore a checkpoint"),
    _restore(f"{_SESSION}/undo", undo_in_session, "Undo the last restore of a session"),
    _restore(f"{_SESSION}/redo", redo_in_session, "Redo in a session"),
    _restore("/api/undo", undo_last, "Undo the last change of the workspace"),
    _restore("/api/redo", redo_last, "Redo in the workspace"),
    Route(
        "GET",
        f"{_SESSION}/approval",
        show_approval,
        ApprovalView,
        "Show the current round",
        tag="rounds",
        looks=True,
    ),
    Route(
        "POST",
        f"{_SESSION}/approve",
        approve,
        ApprovedView,
        "Approve the current round",
        "write",
        tag="rounds",
        other_answers=LATER,
    ),
    Route(
        "GET",
        f"{_SESSION}/reset/preview",
        preview_reset,
        RollbackView,
        "Preview a reset",
        tag="rounds",
        looks=True,
    ),
    _restore(f"{_SESSION}/reset", reset, "Discard everything since the last approval"),
    Route(
        "POST",
        f"{_SESSION}/accept",
        accept,
        AcceptView,
        "Commit checkpoints to git",
        "write",
        tag="rounds",
        other_answers=LATER,
    ),
)
