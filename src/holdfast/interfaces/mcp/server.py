"""One server: tools, resources and prompts, behind checks for every request.

    admission (calls per second of a client, bytes in flight) → scopes of the token → work

A client may call in bursts and then at a steady rate. The memory of all calls in progress is
bounded. A call over the limit is rejected with a hint to retry, and costs nothing. Without a token
(stdio, where the client is the user's own process) everything is allowed. A wider scope does not
include narrower ones: a token names each scope it grants. Request content is never logged.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from holdfast import __version__
from holdfast.domain.errors import Busy, HoldfastError, Refused
from holdfast.interfaces.mcp.resources import add_prompts, add_resources
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.mcp.stdio import AnswerQueue
from holdfast.interfaces.mcp.tools import ServedTools, call_result
from holdfast.interfaces.tools.handlers import TOOLS, error_data, error_text, failed
from holdfast.interfaces.tools.tool import Scope
from holdfast.interfaces.tools.wording import one_line

SCOPES: Mapping[Scope, str] = {
    "read": "holdfast:read",
    "write": "holdfast:write",
    "restore": "holdfast:restore",
    "admin": "holdfast:admin",
}


class InsufficientScope(Refused):
    """The token does not grant the scope that the request needs."""

    code = "insufficient_scope"


def scope_needed(method: str, params: Mapping[str, Any] | None) -> str:
    """The scope that a request needs; listing is reading."""
    name = (params or {}).get("name")
    if method == "tools/call" and isinstance(name, str) and name in TOOLS:
        return SCOPES[TOOLS[name].scope]
    return SCOPES["read"]


def require_scope(granted: list[str] | None, needed: str) -> None:
    if granted is not None and needed not in granted:
        raise InsufficientScope(
            f"the access token does not grant {needed}",
            hint=f"ask for a token with the scope {needed}",
        )


MOST_BYTES = 100_000_000
MOST_CALLS = 2_000
BURST = 1_000
CALLS_PER_SECOND = 50
_MOST_CLIENTS = 1_000
_LEAST_WEIGHT = 1_000
_SECOND_NS = 1_000_000_000


class Admission:
    """Limits calls; thread-safe."""

    def __init__(
        self,
        monotonic_ns: Callable[[], int],
        *,
        burst: int = BURST,
        per_second: float = CALLS_PER_SECOND,
        most_bytes: int = MOST_BYTES,
        most_calls: int = MOST_CALLS,
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._burst = burst
        self._per_second = per_second
        self._most_bytes = most_bytes
        self._most_calls = most_calls
        self._in_flight_bytes = self._in_flight = 0
        self._left: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, client: str, params: Mapping[str, Any] | None) -> Iterator[None]:
        """Admit one call while the block runs; raises `Busy` if there is no room."""
        size_bytes = _LEAST_WEIGHT + weight(params)
        with self._lock:
            self._spend(client)
            if (
                self._in_flight >= self._most_calls
                or self._in_flight_bytes + size_bytes > self._most_bytes
            ):
                raise Busy(
                    f"too many calls at once: {self._in_flight} are in progress",
                    hint="wait for some of them to finish, then call again",
                )
            self._in_flight += 1
            self._in_flight_bytes += size_bytes
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1
                self._in_flight_bytes -= size_bytes

    def _spend(self, client: str) -> None:
        """Use up one of the client's calls; they become available again over time."""
        now = self._monotonic_ns()
        left, since = self._left.pop(client, (float(self._burst), now))
        left = min(left + (now - since) / _SECOND_NS * self._per_second, self._burst)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            raise Busy(
                f"more than {self._per_second:g} calls a second",
                hint=f"wait {(1 - left) / self._per_second:.2f} seconds, then call again",
            )


def weight(value: object) -> int:
    """The approximate size of a request in bytes."""
    total, left = 0, [value]
    while left:
        one = left.pop()
        total += 16
        if isinstance(one, str | bytes):
            total += len(one)
        elif isinstance(one, Mapping):
            left += one.keys()
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    return total


# Lists are the same for all clients and cost nothing.
_GUARDED = ("tools/call", "resources/read", "prompts/get", "completion/complete")
_REFUSED = -32000
_LONGEST_REASON = 300
_INSTRUCTIONS = """\
Holdfast saves the whole workspace with a reason and restores it exactly. Call checkpoint_create \
before anything risky, and when you reach a state worth keeping. When work goes wrong, compare \
with checkpoint_diff and restore with checkpoint_restore instead of repairing by hand. A restore \
previews first and saves the current state, and checkpoint_undo undoes it. Every tool takes \
session_id, to use another session, and workspace, a directory, if the server serves several."""

CallNext = Callable[[ServerRequestContext[Any, Any]], Awaitable[HandlerResult]]


def make_server(
    sessions: ServedSessions, admission: Admission, queue: AnswerQueue | None = None
) -> MCPServer[Any]:
    """A server for some workspaces and any transport; `queue` has its answers, if all of them use
    one channel."""

    async def guard(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in _GUARDED:
            return await call_next(ctx)
        token = get_access_token()
        client = "local" if token is None else f"{token.client_id}/{token.subject}"
        try:
            with admission.admit(client, ctx.params):
                granted = None if token is None else token.scopes
                require_scope(granted, scope_needed(ctx.method, ctx.params))
                if queue is None:
                    return await call_next(ctx)
                async with queue.work():
                    return await call_next(ctx)
        except HoldfastError as error:
            if ctx.method == "tools/call":
                return call_result(failed(error))
            raise MCPError(
                code=_REFUSED, message=error_text(error), data=error_data(error)
            ) from None
        except ValueError as error:
            # An unknown prompt or missing arguments: the caller's mistake.
            if ctx.method != "prompts/get":
                raise
            said = one_line(str(error))[:_LONGEST_REASON]
            raise MCPError(code=INVALID_PARAMS, message=said) from None

    tools = ServedTools(sessions)
    server: MCPServer[Any] = MCPServer(
        "holdfast",
        title="Holdfast",
        description="Undo for AI coding agents",
        instructions=_INSTRUCTIONS,
        version=__version__,
        tools=tools.tools(),
        log_level="WARNING",
        middleware=[guard],
    )
    add_resources(server, tools)
    add_prompts(server)
    return server
