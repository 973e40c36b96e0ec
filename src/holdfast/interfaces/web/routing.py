"""Routes as data, and the common parts of their endpoints: workspace, clock, answer.

An endpoint is a plain function that returns a view from `holdfast.api.views`. It runs in a thread,
and its answer is not validated again.

Guarantee: requests that wait for the store, which another process can keep busy for long, take no
threads from requests that only read saved data.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import parse_qsl, quote, unquote, urlencode

from anyio import CapacityLimiter, to_thread
from pydantic_core import PydanticSerializationError, to_json
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.workspace import Workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import Refused, UsageError
from holdfast.domain.ids import SessionId, session_id
from holdfast.domain.paths import require_safe_path
from holdfast.interfaces.web.access import LOCAL, OBSERVED_KEY, OPEN_PATHS, SCOPES_KEY, Access
from holdfast.interfaces.web.workspaces import ServedWorkspaces

if TYPE_CHECKING:
    from holdfast.interfaces.web.operations import Operations
    from holdfast.interfaces.web.streams import Streams
    from holdfast.interfaces.web.telemetry import Telemetry

JSON = "application/json"
WORKSPACE_KEY = "holdfast.workspace"
"""Scope key: the id of the workspace in the address."""
_MOST_WAITING = 40


@dataclass(frozen=True, slots=True)
class Server:
    """What endpoints reach through `request.app.state.server`."""

    workspaces: ServedWorkspaces
    access: Access
    operations: Operations
    streams: Streams
    telemetry: Telemetry
    monotonic_ns: Callable[[], int]
    waiting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_MOST_WAITING))
    """Threads for routes that may wait."""


@dataclass(frozen=True, slots=True)
class Route:
    """`answer` is the type of the view, and `scope` is what a token must allow. `looks` marks reads
    that need the store's lock, such as a scan of the workspace."""

    method: str
    path: str
    endpoint: Callable[..., Any]
    answer: Any
    summary: str
    scope: str = "read"
    status: int = 200
    tag: str = "history"
    media_types: tuple[str, ...] = (JSON,)
    other_answers: Mapping[int, OtherAnswer] = field(default_factory=dict)
    looks: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether a busy store makes it wait."""
        return self.looks or self.method != "GET"


@dataclass(frozen=True, slots=True)
class OtherAnswer:
    """An answer with another status: its meaning, and its view. None means the same content."""

    meaning: str
    view: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A view with a status other than 200, or with headers."""

    view: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class LoginLinkView(TypedDict):
    """A link that signs a browser in, once, within `expires_in_s` seconds."""

    link: str
    expires_in_s: int


def server_of(request: Request) -> Server:
    found: Server = request.app.state.server
    return found


def served(request: Request, *, create: bool = False) -> AbstractContextManager[Workspace]:
    """The workspace in the address, or the server's own."""
    return server_of(request).workspaces.use(workspace_id(request), create=create)


def served_path(request: Request) -> Path:
    """The directory of that workspace, even if nothing was ever saved there."""
    return server_of(request).workspaces.place(workspace_id(request))


def workspace_id(request: Request) -> str | None:
    found: str | None = request.scope.get(WORKSPACE_KEY)
    return found


def address(request: Request, *parts: str) -> str:
    """An address in the same workspace, from the path segments below `/api`."""
    workspace = workspace_id(request)
    place = () if workspace is None else ("workspaces", workspace)
    return "/".join(quote(part, safe="") for part in ("", "api", *place, *parts))


def elapsed_ms(request: Request) -> float:
    """Milliseconds since the request began."""
    begun_ns: int = request.state.begun_ns
    return round((server_of(request).monotonic_ns() - begun_ns) / 1e6, 3)


def known_session(workspace: Workspace, text: str) -> SessionId:
    """An existing session, by its id."""
    return workspace.sessions.require(session_id(text)).id


@contextmanager
def served_checkpoint(
    request: Request, session: str, reference: str
) -> Iterator[tuple[Workspace, Checkpoint]]:
    """The workspace, and a checkpoint of an existing session."""
    with served(request) as workspace:
        yield workspace, workspace.resolve(known_session(workspace, session), reference)


def raw_parameter(request: Request, name: str) -> str | None:
    """A parameter with the bytes that were sent, because paths need not be UTF-8."""
    query = request.scope["query_string"].decode("latin-1")
    found = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    return next((str(value) for key, value in found if key == name), None)


def path_parameter(request: Request, name: str = "path") -> bytes | None:
    """A path inside the workspace; None if it is missing."""
    text = raw_parameter(request, name)
    return None if text is None else checked_path(text)


def checked_path(text: str) -> bytes:
    try:
        return require_safe_path(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is not a path that a file can have") from None


def link_next(request: Request, cursor: str | None) -> dict[str, str]:
    """The header with the next page (RFC 8288)."""
    if cursor is None:
        return {}
    given = parse_qsl(request.scope["query_string"], keep_blank_values=True)
    query = urlencode(
        [*((key, value) for key, value in given if key != b"cursor"), ("cursor", cursor)]
    )
    _, _, *parts = map(unquote, request.scope["path"].split("/"))
    path = address(request, *parts)
    return {"link": f'<{path}?{query}>; rel="next"', "x-next-cursor": cursor}


def as_endpoint(route: Route) -> Callable[..., Any]:
    """The HTTP endpoint: same parameters, but it returns the response."""
    if iscoroutinefunction(route.endpoint):

        @functools.wraps(route.endpoint)
        async def respond_at_once(*given: Any, **named: Any) -> Response:
            _begin(route, named["request"])
            return _response(route, named["request"], await route.endpoint(*given, **named))

        return respond_at_once

    @functools.wraps(route.endpoint)
    def respond(*given: Any, **named: Any) -> Response:
        _begin(route, named["request"])
        return _response(route, named["request"], route.endpoint(*given, **named))

    if not route.may_wait:
        return respond

    @functools.wraps(route.endpoint)
    async def respond_in_turn(*given: Any, **named: Any) -> Response:
        work = functools.partial(respond, *given, **named)
        return await to_thread.run_sync(work, limiter=server_of(named["request"]).waiting)

    return respond_in_turn


def _response(route: Route, request: Request, found: Any) -> Response:
    if not isinstance(found, Response):
        answer = found if isinstance(found, Answer) else Answer(found, route.status)
        found = json_response(request, answer)
    return headers_only(found) if request.method == "HEAD" else found


def headers_only(response: Response) -> Response:
    """The answer to HEAD: what GET sends before the content."""
    head = Response(None, response.status_code)
    head.raw_headers = response.raw_headers
    return head


class InsufficientScope(Refused):
    """The token does not allow the route."""

    code = "insufficient_scope"


def _begin(route: Route, request: Request) -> None:
    request.state.begun_ns = server_of(request).monotonic_ns()
    request.scope[OBSERVED_KEY]["route"] = route.path
    allowed = request.scope.get(SCOPES_KEY, ())
    if route.path in OPEN_PATHS or route.scope in allowed:
        return
    if route.scope == LOCAL:
        raise InsufficientScope(
            "this needs the local token", hint="use the one that holdfast serve --json prints"
        )
    raise InsufficientScope(
        f"the token does not have the scope holdfast:{route.scope}",
        hint="ask the authorization server for a token with it",
    )


def json_response(request: Request, answer: Answer) -> Response:
    """With an entity tag, so that a client that already has the answer gets 304."""
    content, headers = _encode(answer.view), dict(answer.headers)
    if request.method in ("GET", "HEAD") and answer.status == 200:
        headers["etag"] = entity_tag(content)
        headers.setdefault("cache-control", "private, no-cache")
        if is_known(request, headers["etag"]):
            return Response(None, 304, headers)
    return Response(content, answer.status, headers, JSON)


def entity_tag(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def is_known(request: Request, tag: str) -> bool:
    """Whether the client already has this version."""
    given = request.headers.get("if-none-match", "")
    return given == "*" or tag in (one.strip().removeprefix("W/") for one in given.split(","))


def _encode(view: Any) -> bytes:
    try:
        return to_json(view)
    except PydanticSerializationError:
        # A name that is not UTF-8 has lone surrogates, which only the slower encoder escapes.
        return json.dumps(view, separators=(",", ":")).encode()
