"""For server operators: `livez`, `readyz`, `healthz` and metrics.

Probes need no token, so they report only whether the server works.
"""

from __future__ import annotations

from typing import TypedDict

from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.workspace import open_workspace
from holdfast.domain.errors import HoldfastError, NothingSaved
from holdfast.interfaces.web.routing import Answer, OtherAnswer, Route, server_of
from holdfast.interfaces.web.telemetry import MEDIA_TYPE


class ProbeView(TypedDict):
    """`status` is `ok`, or `unavailable` with HTTP status 503."""

    status: str


async def live(request: Request) -> ProbeView:
    return {"status": "ok"}


def ready(request: Request) -> Answer:
    """Whether the workspace can be read now. It is opened for this check, because an open workspace
    may have cached data that the disk no longer has."""
    own = server_of(request).workspaces.own
    try:
        with open_workspace(own, create=False, passive=True) as workspace:
            workspace.head()
    except NothingSaved:
        return Answer({"status": "ok"})
    except (HoldfastError, OSError):
        return Answer({"status": "unavailable"}, 503)
    return Answer({"status": "ok"})


def metrics(request: Request) -> Response:
    return Response(server_of(request).telemetry.text(), media_type=MEDIA_TYPE)


_UNAVAILABLE = {503: OtherAnswer("The workspace cannot be read", ProbeView)}
ROUTES = (
    Route("GET", "/livez", live, ProbeView, "Check that the server is running", tag="health"),
    *(
        Route(
            "GET",
            path,
            ready,
            ProbeView,
            "Check that the server can answer requests",
            tag="health",
            other_answers=_UNAVAILABLE,
        )
        for path in ("/healthz", "/readyz")
    ),
    Route(
        "GET",
        "/metrics",
        metrics,
        None,
        "Metrics in the Prometheus text format",
        tag="health",
        media_types=("text/plain",),
    ),
)
