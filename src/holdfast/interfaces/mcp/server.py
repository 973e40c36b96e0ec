"""One server: tools, resources and prompts, behind the checks that every request passes.

Each request that does something is let in by `Admission`, then has to be granted by the client's
token. Nothing about a request's content is logged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent

from holdfast import __version__
from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.mcp.admission import Admission
from holdfast.interfaces.mcp.answer_queue import AnswerQueue
from holdfast.interfaces.mcp.prompts import add_prompts
from holdfast.interfaces.mcp.resources import add_resources
from holdfast.interfaces.mcp.scopes import require_scope, scope_needed
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.mcp.tools import ServedTools
from holdfast.interfaces.tools.handlers import error_data, error_text
from holdfast.interfaces.tools.wording import one_line

# What is listed is the same for all and costs nothing.
_GUARDED = ("tools/call", "resources/read", "prompts/get", "completion/complete")
_REFUSED = -32000
_LONGEST_REASON = 300
_INSTRUCTIONS = """\
Holdfast saves the whole workspace with the reason and takes it back exactly. Call \
checkpoint_create before anything risky and after every state worth keeping. When work goes wrong, \
look with checkpoint_diff and go back with checkpoint_restore instead of repairing by hand: it \
previews first, saves the present state, and checkpoint_undo takes it back."""

CallNext = Callable[[ServerRequestContext[Any, Any]], Awaitable[HandlerResult]]


def make_server(
    sessions: ServedSessions, admission: Admission, queue: AnswerQueue | None = None
) -> MCPServer[Any]:
    """The server of some workspaces, for any transport; `queue` is where its answers leave, if all
    of them leave by one way."""

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
                text = TextContent(type="text", text=error_text(error))
                return CallToolResult(content=[text], is_error=True)
            raise MCPError(
                code=_REFUSED, message=error_text(error), data=error_data(error)
            ) from None
        except ValueError as error:
            # An unknown prompt, or one without its arguments: the caller's mistake.
            if ctx.method != "prompts/get":
                raise
            said = one_line(str(error))[:_LONGEST_REASON]
            raise MCPError(code=INVALID_PARAMS, message=said) from None

    tools = ServedTools(sessions)
    server: MCPServer[Any] = MCPServer(
        "holdfast",
        title="Holdfast",
        description="Save games for AI coding agents",
        instructions=_INSTRUCTIONS,
        version=__version__,
        tools=tools.tools(),
        log_level="WARNING",
        middleware=[guard],
    )
    add_resources(server, tools)
    add_prompts(server)
    return server
