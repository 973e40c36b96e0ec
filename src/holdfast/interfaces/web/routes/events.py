"""Live events, as server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from holdfast.api.views.streams import StreamEventView
from holdfast.interfaces.web.parameters import SessionParameter
from holdfast.interfaces.web.routing import (
    Route,
    known_session,
    served,
    server_of,
    workspace_id,
)
from holdfast.interfaces.web.streams import LastEvent, start_position

MEDIA_TYPE = "text/event-stream"
_LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="The id of the last event you have.")
]
_After = Annotated[
    str | None,
    Query(max_length=40, description="The same, for clients that cannot send the header."),
]


async def workspace_events(
    request: Request, last_event_id: _LastEventId = None, after: _After = None
) -> StreamingResponse:
    return await _events(request, last_event_id or after, None)


async def session_events(
    request: Request,
    session_id: SessionParameter,
    last_event_id: _LastEventId = None,
    after: _After = None,
) -> StreamingResponse:
    return await _events(request, last_event_id or after, session_id)


async def dialog_events(
    request: Request,
    dialog_id: SessionParameter,
    last_event_id: _LastEventId = None,
    after: _After = None,
) -> StreamingResponse:
    return await _events(request, last_event_id or after, dialog_id)


async def _events(request: Request, last: str | None, session: str | None) -> StreamingResponse:
    named = None if not last else LastEvent.parse(last)
    begin, newest = await run_in_threadpool(_start_position, request, named, session)
    messages = server_of(request).streams.read(workspace_id(request), begin, newest, session)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(messages, 200, headers, MEDIA_TYPE)


def _start_position(
    request: Request, last: LastEvent | None, session: str | None
) -> tuple[LastEvent, int]:
    with served(request) as workspace:
        if session is not None:
            known_session(workspace, session)
        return start_position(workspace, last)


def _route(path: str, endpoint: object, summary: str) -> Route:
    assert callable(endpoint)
    return Route(
        "GET", path, endpoint, StreamEventView, summary, tag="events", media_types=(MEDIA_TYPE,)
    )


ROUTES = (
    _route("/api/events", workspace_events, "Follow a workspace"),
    _route("/api/sessions/{session_id}/events", session_events, "Follow a session"),
    _route("/api/dialogs/{dialog_id}/events", dialog_events, "Follow a dialog"),
)
