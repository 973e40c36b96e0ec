"""Workspaces and their sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.requests import Request

from holdfast.api.pages import message_page, timeline_page
from holdfast.api.stores import known_workspaces
from holdfast.api.views.pages import MessagesView
from holdfast.api.views.sessions import (
    ChangedSessionView,
    DeletedSessionView,
    RoundView,
    SessionView,
    changed_session_view,
    deleted_session_view,
    round_view,
    session_view,
)
from holdfast.api.views.timeline import TimelineView, timeline_view
from holdfast.api.views.workspaces import WorkspacesView, workspaces_view
from holdfast.domain.errors import NotFound, NothingSaved
from holdfast.domain.timeline.timeline import Timeline
from holdfast.interfaces.web.parameters import Cursor, Limit, RequestBody, SessionParameter
from holdfast.interfaces.web.routing import (
    Answer,
    Route,
    known_session,
    link_next,
    served,
    server_of,
)


class SessionChange(RequestBody):
    """A new title, or a new status: `ended` or `archived`."""

    title: str | None = Field(default=None, min_length=1, max_length=1000)
    status: str | None = Field(default=None, pattern="^(ended|archived)$")


def list_workspaces(request: Request) -> WorkspacesView:
    return workspaces_view(known_workspaces(), server_of(request).workspaces.own)


def list_sessions(request: Request) -> list[SessionView]:
    try:
        with served(request) as workspace:
            return [session_view(one) for one in workspace.sessions.overview()]
    except NothingSaved:
        return []


def show_session(request: Request, session_id: SessionParameter) -> SessionView:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        for one in workspace.sessions.overview():
            if one.session.id == wanted:
                return session_view(one)
    raise NotFound(f"the session {wanted!r} has no checkpoints")


def change_session(
    request: Request, session_id: SessionParameter, body: SessionChange
) -> ChangedSessionView:
    with served(request) as workspace:
        wanted, sessions = known_session(workspace, session_id), workspace.sessions
        if body.title is not None:
            sessions.rename(wanted, body.title)
        if body.status == "ended":
            sessions.end(wanted)
        elif body.status == "archived":
            sessions.archive(wanted)
        changed = sessions.require(wanted)
        return changed_session_view(changed, sessions.status(changed))


def delete_session(request: Request, session_id: SessionParameter) -> DeletedSessionView:
    with served(request) as workspace:
        return deleted_session_view(workspace.sessions.delete(known_session(workspace, session_id)))


def list_rounds(request: Request, session_id: SessionParameter) -> list[RoundView]:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        return [round_view(one, wanted) for one in workspace.rounds.all(wanted)]


def session_timeline(
    request: Request,
    session_id: SessionParameter,
    limit: Limit = 100,
    cursor: Cursor = None,
    messages: Annotated[bool, Query(description="Include messages.")] = True,
) -> Answer:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        page = timeline_page(workspace, wanted, limit=limit, cursor=cursor, messages=messages)
    return Answer(page, headers=link_next(request, page["next"]))


def workspace_timeline(
    request: Request,
    limit: Limit = 100,
    cursor: Cursor = None,
    messages: Annotated[bool, Query(description="Include messages.")] = True,
) -> Answer:
    try:
        with served(request) as workspace:
            page = timeline_page(workspace, None, limit=limit, cursor=cursor, messages=messages)
    except NothingSaved:
        page = timeline_view(Timeline(()))
    return Answer(page, headers=link_next(request, page["next"]))


def list_messages(
    request: Request,
    session_id: SessionParameter,
    first: Annotated[
        int, Query(ge=0, le=1 << 40, description="The index of the first message.")
    ] = 0,
    limit: Limit = 100,
) -> MessagesView:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        return message_page(workspace, wanted, first=first, limit=limit)


_SESSION = "/api/sessions/{session_id}"
ROUTES = (
    Route("GET", "/api/workspaces", list_workspaces, WorkspacesView, "List your workspaces"),
    Route("GET", "/api/sessions", list_sessions, list[SessionView], "List sessions"),
    Route("GET", _SESSION, show_session, SessionView, "Show a session"),
    Route(
        "PUT",
        _SESSION,
        change_session,
        ChangedSessionView,
        "Rename, end or archive a session",
        "write",
    ),
    Route("DELETE", _SESSION, delete_session, DeletedSessionView, "Delete a session", "admin"),
    Route("GET", f"{_SESSION}/messages", list_messages, MessagesView, "List messages in full"),
    Route("GET", f"{_SESSION}/rounds", list_rounds, list[RoundView], "List a session's rounds"),
    Route(
        "GET",
        f"{_SESSION}/checkpoints/timeline",
        session_timeline,
        TimelineView,
        "Show a session's timeline",
    ),
    Route("GET", f"{_SESSION}/timeline", session_timeline, TimelineView, "The same"),
    Route(
        "GET", "/api/timeline", workspace_timeline, TimelineView, "Show the workspace's timeline"
    ),
)
