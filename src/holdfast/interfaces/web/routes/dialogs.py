"""Sessions for dialog clients: show, approve and reset the round."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body
from pydantic import Field
from starlette.requests import Request

from holdfast.api.views.rollbacks import (
    DialogApprovedView,
    DialogResetView,
    DialogRestoredView,
    DialogSessionView,
    dialog_approved_view,
    dialog_reset_view,
    dialog_restored_view,
    dialog_session_view,
)
from holdfast.interfaces.web.parameters import RequestBody, SessionParameter
from holdfast.interfaces.web.routes.restores import ApproveBody
from holdfast.interfaces.web.routing import Route, known_session, served, server_of


class DialogRestoreBody(RequestBody):
    """The checkpoint to restore."""

    checkpoint_id: str = Field(min_length=1, max_length=300)


def dialog_session(request: Request, dialog_id: SessionParameter) -> DialogSessionView:
    with served(request) as workspace:
        session = known_session(workspace, dialog_id)
        return dialog_session_view(workspace.rounds.status(session, look=True))


def dialog_approve(
    request: Request,
    dialog_id: SessionParameter,
    body: Annotated[ApproveBody | None, Body()] = None,
) -> DialogApprovedView:
    with served(request) as workspace:
        session = known_session(workspace, dialog_id)
        message = None if body is None else body.message
        return dialog_approved_view(workspace.rounds.approve(session, message))


def dialog_reset(request: Request, dialog_id: SessionParameter) -> DialogResetView:
    with served(request) as workspace:
        session, rounds = known_session(workspace, dialog_id), workspace.rounds
        with server_of(request).telemetry.restore("reset", session) as span:
            outcome = workspace.restores.restore(lambda: rounds.reset_request(session))
            span.update(checkpoint=outcome.restored_to, files=outcome.files_changed)
        return dialog_reset_view(rounds.reset_outcome(session, outcome))


def dialog_restore(
    request: Request, dialog_id: SessionParameter, body: DialogRestoreBody
) -> DialogRestoredView:
    with served(request) as workspace:
        session = known_session(workspace, dialog_id)
        wanted = workspace.restores.request(session, body.checkpoint_id)
        with server_of(request).telemetry.restore("restore", session) as span:
            outcome = workspace.restores.restore(wanted)
            span.update(checkpoint=outcome.restored_to, files=outcome.files_changed)
        return dialog_restored_view(outcome)


_DIALOG = "/api/dialogs/{dialog_id}"

ROUTES = (
    Route(
        "GET",
        f"{_DIALOG}/session",
        dialog_session,
        DialogSessionView,
        "Show the round of a dialog",
        tag="dialogs",
        looks=True,
    ),
    Route(
        "POST",
        f"{_DIALOG}/approve",
        dialog_approve,
        DialogApprovedView,
        "Approve the round of a dialog",
        "write",
        tag="dialogs",
    ),
    Route(
        "POST",
        f"{_DIALOG}/reset",
        dialog_reset,
        DialogResetView,
        "Return a dialog to its last approval",
        "restore",
        tag="dialogs",
    ),
    Route(
        "POST",
        f"{_DIALOG}/restore",
        dialog_restore,
        DialogRestoredView,
        "Restore a checkpoint of a dialog",
        "restore",
        tag="dialogs",
    ),
)
