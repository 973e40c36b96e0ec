"""The application: routes behind the guard, errors as problem details, and the OpenAPI document.

    guard → /api/workspaces/ID/… becomes /api/… with the workspace noted → route → endpoint

Path segments keep `%` and `/` encoded until the endpoint reads them, because names may contain
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.web.access import OBSERVED_KEY, Guard
from holdfast.interfaces.web.openapi import openapi_document
from holdfast.interfaces.web.page_files import page_routes
from holdfast.interfaces.web.problems import error_response, problem_response
from holdfast.interfaces.web.routes import (
    checkpoints,
    dialogs,
    diffs,
    events,
    probes,
    restores,
    sessions,
    upkeep,
)
from holdfast.interfaces.web.routing import (
    WORKSPACE_KEY,
    InsufficientScope,
    Route,
    Server,
    as_endpoint,
)

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig  # not in every version

_TOPICS = (probes, sessions, checkpoints, diffs, restores, dialogs, upkeep, events)
ROUTES: Sequence[Route] = tuple(route for topic in _TOPICS for route in topic.ROUTES)
_OTHERS = "/api/workspaces/"
_NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""FastAPI's own spans and logs contain addresses with paths, names and searches."""


def describe_api() -> bytes:
    """The OpenAPI document, without a server."""
    return openapi_document(_routed_app(), ROUTES)


def _routed_app() -> FastAPI:
    app = FastAPI(
        title="Holdfast", openapi_url=None, docs_url=None, redoc_url=None, telemetry=_NO_TELEMETRY
    )
    app.router.redirect_slashes = False
    app.router.routes.extend(_api_routes())
    return app


@cache
def _api_routes() -> Sequence[BaseRoute]:
    """The same for every server of this process: most of a start is the time to prepare them."""
    router = APIRouter()
    # Fixed words first: `…/checkpoints/timeline` is not a checkpoint. Routes are tried in order,
    # so those for HEAD, which few clients send, come last.
    ordered = sorted(ROUTES, key=lambda one: one.path.replace("{", "~"))
    for route in ordered:
        router.add_api_route(
            route.path,
            as_endpoint(route),
            methods=[route.method],
            name=f"{route.method} {route.path}",
            response_model=None,
        )
    for route in ordered:
        if route.method == "GET":
            router.add_api_route(
                route.path,
                as_endpoint(route),
                methods=["HEAD"],
                response_model=None,
                include_in_schema=False,
            )
    return tuple(router.routes)


def make_app(server: Server) -> ASGIApp:
    app = _routed_app()
    app.state.server = server
    document = cache(lambda: openapi_document(app, ROUTES))  # generating it takes a moment
    app.router.routes.extend(page_routes())
    app.add_route(
        "/openapi.json", lambda request: Response(document(), media_type="application/openapi+json")
    )
    app.add_exception_handler(HoldfastError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)
    return Guard(_Addresses(app), server.access)


class _Addresses:
    """Splits addresses before they are decoded, and serves every route for other workspaces too,
    below `/api/workspaces/ID/`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path, workspace = _split(scope["raw_path"]), None
            if path.startswith(_OTHERS):
                named, slash, rest = path.removeprefix(_OTHERS).partition("/")
                if slash:
                    path, workspace = f"/api/{rest}", unquote(named)
            scope = {**scope, "path": path, WORKSPACE_KEY: workspace}
        await self._app(scope, receive, send)


def _split(raw_path: bytes) -> str:
    """Decoded, except for `%` and `/` inside a segment."""
    parts = (unquote(part) for part in raw_path.decode("ascii").split("/"))
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    _note(request, error.code)
    if isinstance(error, InsufficientScope):
        challenge = {"www-authenticate": 'Bearer error="insufficient_scope"'}
        return problem_response(403, error.code, error.message, error.hint, challenge)
    return error_response(error)


def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    _note(request, "usage")
    found: Sequence[Any] = error.errors()
    words = "; ".join(_invalid_words(one) for one in found[:5])
    return problem_response(400, "usage", words, "see /openapi.json")


def _invalid_words(one: Any) -> str:
    where = ".".join(str(part) for part in one["loc"])
    return f"{where}: {one['msg']}"


def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    _note(request, {404: "no_route", 405: "method"}.get(error.status_code, "usage"))
    if error.status_code == 404:
        return problem_response(
            404, "no_route", "there is nothing at this URL", "see /openapi.json"
        )
    if error.status_code == 405:
        return problem_response(
            405,
            "method",
            f"{request.method} is not allowed at this URL",
            headers={"allow": ", ".join(_methods(request))},
        )
    return problem_response(error.status_code, "usage", str(error.detail))


def _methods(request: Request) -> list[str]:
    """The methods at an address, because each route knows only its own."""
    found = set[str]()
    for route in request.app.router.routes:
        if isinstance(route, StarletteRoute) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


def _note(request: Request, code: str) -> None:
    """For metrics and the log, which record the route's address but nothing from the request."""
    observed = request.scope.get(OBSERVED_KEY, {})
    observed["code"] = code
    route = request.scope.get("route")
    if route is not None:
        observed["route"] = route.path


def _on_bug(request: Request, error: Exception) -> Response:
    # An error after the status was sent also arrives here, and keeps its code.
    _note(request, request.scope.get(OBSERVED_KEY, {}).get("code", "error"))
    return error_response(error)
