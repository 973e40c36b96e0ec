"""Agent tools as MCP tools: schemas from their definitions, results as typed data.

    raw arguments → the session's handlers, in a thread → text for the model, data by its schema

The handlers check arguments, not the protocol's library, so that a mistake gets a correction. If a
confirmation is needed and the client supports it, the user is asked. A client that cannot ask, or
closes the question without an answer (as one without a user does), gets the preview and its token.
Notices about other restores come with the answer to a call, for the client and not for the user. If
that answer does not arrive, the next one repeats them.
"""

# Annotations must be values, not strings: the library reads those of the functions below.
import dataclasses
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp.server.elicitation import (
    AcceptedElicitation,
    CancelledElicitation,
    ElicitationResult,
)
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.mcp.output_schema import output_schemas
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.tools.handlers import (
    TOOLS,
    ToolHandlers,
    ToolResult,
    failed,
    input_schema,
    unexpected,
    with_notices,
    without_store,
)
from holdfast.interfaces.tools.tool import Tool as AgentTool

if TYPE_CHECKING:
    from holdfast.domain.agent_events import NoticeClaim
    from holdfast.domain.ids import CheckpointId

_PLACE = ("workspace", "session_id")
"""Every tool takes them; the server's instructions explain them."""
Answered = tuple[ToolResult, "CheckpointId | None"]
"""An answer, and the restore record that it reports."""
_MOST_AT_WORK = 8


class Consent(BaseModel):
    """The user's answer."""

    confirm: bool = Field(description="Do it")


@dataclasses.dataclass(frozen=True, slots=True)
class _Preview:
    """The preview to confirm. `answer` is None if the client cannot ask, `token` if there is
    nothing to confirm."""

    answer: ToolResult | None = None
    token: str | None = None


class ServedTools:
    """Every tool, on the sessions of one server."""

    def __init__(self, sessions: ServedSessions) -> None:
        self._sessions = sessions
        self._limiter = anyio.CapacityLimiter(_MOST_AT_WORK)

    def tools(self) -> list[Tool]:
        schemas = output_schemas(TOOLS.values())
        return [self._tool(tool, schemas[tool.name]) for tool in TOOLS.values()]

    def _tool(self, offered: AgentTool, output_schema: dict[str, Any]) -> Tool:
        confirmed = offered.parameter("confirm_token") is not None
        tool = Tool.from_function(
            self._confirmed_tool(offered.name) if confirmed else self._plain_tool(offered.name),
            name=offered.name,
            title=offered.title,
            description=offered.description,
            annotations=ToolAnnotations(
                read_only_hint=offered.read_only,
                destructive_hint=offered.destructive,
                idempotent_hint=offered.idempotent,
                open_world_hint=False,
            ),
        )
        schema = input_schema(offered)
        place = {name: {"type": "string"} for name in _PLACE}
        tool.parameters = schema | {"properties": place | schema["properties"]}
        tool.fn_metadata.output_schema = output_schema
        return tool

    def _plain_tool(self, name: str) -> Any:
        async def call(ctx: Context) -> CallToolResult:
            return call_result(await self.call(name, arguments_of(ctx)))

        return call

    def _confirmed_tool(self, name: str) -> Any:
        """A tool that needs a confirmation, from the user if the client can ask."""

        async def look(ctx: Context) -> _Preview:
            arguments = arguments_of(ctx)
            if not can_ask(ctx) or arguments.get("confirm_token") or _wants_preview(arguments):
                return _Preview()
            shown = await self.call(name, arguments, notices=False)
            return _Preview(shown, getattr(shown.data, "confirm_token", None))

        async def ask(shown: Annotated[_Preview, Resolve(look)]) -> Consent | Elicit[Consent]:
            if shown.answer is None or shown.token is None:
                return Consent(confirm=False)
            return Elicit(_question(shown.answer, shown.token), Consent)

        async def call(
            ctx: Context,
            shown: Annotated[_Preview, Resolve(look)],
            consent: Annotated[ElicitationResult[Consent], Resolve(ask)],
        ) -> CallToolResult:
            arguments = arguments_of(ctx)
            if shown.answer is None:
                return call_result(await self.call(name, arguments))
            agreed = isinstance(consent, AcceptedElicitation) and consent.data.confirm
            if shown.token is None or not agreed:
                said = shown.answer if shown.token is None else _declined(shown.answer, consent)
                return call_result(
                    await self.run(name, lambda _: (said, None), arguments, notices=True)
                )
            place = {key: arguments[key] for key in _PLACE if key in arguments}
            return call_result(await self.call(name, place | {"confirm_token": shown.token}))

        return call

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, notices: bool = True
    ) -> ToolResult:
        """The answer of a tool; with `notices`, including notices about restores for the agent."""
        given = {key: value for key, value in arguments.items() if key not in _PLACE}

        def work(handlers: ToolHandlers) -> Answered:
            return handlers.answer(name, given)

        tool = TOOLS.get(name)
        return await self.run(
            name,
            work,
            arguments,
            notices=notices,
            empty=partial(without_store, name) if tool is not None and tool.read_only else None,
            starts_session=tool is not None and tool.starts_session,
        )

    async def run(
        self,
        name: str,
        work: Callable[[ToolHandlers], Answered],
        place: Mapping[str, Any] = MappingProxyType({}),
        *,
        notices: bool = False,
        empty: Callable[[Path, str], ToolResult] | None = None,
        starts_session: bool = False,
    ) -> ToolResult:
        """The answer of some work on a session. The work runs in a thread and always completes.
        Read-only work has an `empty` answer, and creates no store. Work that `starts_session` may
        name a new session."""
        claimed: list[NoticeClaim] = []

        def answer() -> ToolResult:
            try:
                where = (place.get("workspace"), place.get("session_id"))
                if empty and (bare := self._sessions.without_store(*where)) is not None:
                    return empty(*bare)
                with self._sessions.handlers(*where, create=starts_session) as handlers:
                    result, restored = work(handlers)
                    claim = handlers.claim_notices(restored) if notices else None
                    if claim is None:
                        return result
                    claimed.append(claim)
                    return with_notices(result, claim.texts)
            except HoldfastError as error:
                return failed(error)
            except Exception as error:
                return unexpected(name, error)

        reached = False
        try:
            result = await anyio.to_thread.run_sync(answer, limiter=self._limiter)
            await anyio.lowlevel.checkpoint_if_cancelled()
            reached = True
            return result
        finally:
            for claim in claimed:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._settle, place, claim, reached)

    def _settle(self, place: Mapping[str, Any], claim: "NoticeClaim", reached: bool) -> None:
        with suppress(HoldfastError):  # then the claim expires, and the next answer has it
            directory = place.get("workspace")
            with self._sessions.handlers(directory, str(claim.session_id)) as handlers:
                handlers.settle_notices(claim, delivered=reached)


def arguments_of(ctx: Context) -> dict[str, Any]:
    """The arguments as they were sent."""
    params = ctx.request_context.params or {}
    given = params.get("arguments")
    return dict(given) if isinstance(given, Mapping) else {}


def _wants_preview(arguments: Mapping[str, Any]) -> bool:
    return str(arguments.get("preview")).lower() == "true"


def can_ask(ctx: Context) -> bool:
    capabilities = ctx.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _question(shown: ToolResult, token: str) -> str:
    """The preview without its token, so that the same plan gives the same question."""
    lines = [line for line in shown.output.split("\n") if token not in line]
    plan = getattr(shown.data, "plan_id", "")
    return "\n".join([*lines, f"Proceed? (plan {plan})"])


def _declined(shown: ToolResult, consent: object) -> ToolResult:
    """A no from the user is final. A question closed without an answer is not a no: clients without
    a user close it themselves, and need a way to continue."""
    if isinstance(consent, CancelledElicitation):
        text = (
            "The question was closed without an answer, so nothing was changed. If the user "
            "asked for this, go on with the confirm_token below; otherwise ask them first."
        )
        return ToolResult(None, True, f"{text}\n{shown.output}", shown.data)
    data: Any = dataclasses.replace(shown.data, confirm_token=None)  # type: ignore[type-var]
    text = "The user was asked and did not agree. Nothing was changed; do not try it again."
    return ToolResult(None, True, text, data)


def call_result(answer: ToolResult) -> CallToolResult:
    data: Any = answer.data
    return CallToolResult(
        content=[TextContent(type="text", text=answer.output)],
        structured_content=dataclasses.asdict(data),
        is_error=not answer.success,
    )
