"""The agent's tools as tools of the protocol: schemas from their specs, results as typed data.

    raw arguments → the session's handlers, in a thread → text for the model, data by its schema

Arguments are checked by the handlers and not by the protocol's library, so that a mistake gets a
correction. What needs a confirmation is asked of the person where the client can ask; elsewhere
the client gets the preview and its token.
"""

# Annotations are values here, not texts: the library reads those of the functions made below.
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, TypeAdapter

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.tools import results
from holdfast.tools.answers import ToolResult, told, unexpected
from holdfast.tools.formats import input_schema
from holdfast.tools.specs import SPECS, ToolSpec

if TYPE_CHECKING:
    from holdfast.tools import ToolHandlers

_RESULTS: Mapping[str, type] = {
    "checkpoint_create": results.Created,
    "checkpoint_list": results.Listed,
    "checkpoint_history": results.LineOfWork,
    "checkpoint_show": results.Shown,
    "checkpoint_search": results.Found,
    "checkpoint_annotate": results.Annotated,
    "checkpoint_diff": results.Compared,
    "checkpoint_why": results.Explained,
    "checkpoint_restore": results.Restored,
    "checkpoint_undo": results.Restored,
    "checkpoint_approve": results.Approved,
    "checkpoint_reset": results.Restored,
    "checkpoint_stats": results.Statistics,
    "checkpoint_cleanup": results.CleanedUp,
    "checkpoint_auto_configure": results.AutomaticSettings,
}
_PLACE = {
    "workspace": {
        "type": "string",
        "description": "The workspace to work on, if the server serves several. Default: its own.",
    },
    "session_id": {
        "type": "string",
        "description": "The session to work in. Default: the server's own.",
    },
}
_MOST_AT_WORK = 8
_BEGINS = "checkpoint_create"
"""The tool that makes a session which is not there yet."""


class Consent(BaseModel):
    """What the person is asked."""

    confirm: bool = Field(description="Do it")


@dataclasses.dataclass(frozen=True, slots=True)
class _Preview:
    """What is to be confirmed, where the client can ask; `question` is None where it is not."""

    question: str | None = None
    token: str | None = None
    answer: ToolResult | None = None


class ServedTools:
    """Every tool, on the sessions of one server."""

    def __init__(self, sessions: ServedSessions) -> None:
        self._sessions = sessions
        self._limiter: anyio.CapacityLimiter | None = None

    def tools(self) -> list[Tool]:
        return [self._tool(spec) for spec in SPECS.values()]

    def _tool(self, spec: ToolSpec) -> Tool:
        confirmed = spec.parameter("confirm_token") is not None
        tool = Tool.from_function(
            self._asking(spec.name) if confirmed else self._plain(spec.name),
            name=spec.name,
            title=spec.title,
            description=spec.description,
            annotations=ToolAnnotations(
                title=spec.title,
                read_only_hint=spec.read_only,
                destructive_hint=spec.destructive,
                idempotent_hint=spec.idempotent,
                open_world_hint=False,
            ),
        )
        schema = input_schema(spec)
        tool.parameters = schema | {"properties": schema["properties"] | _PLACE}
        tool.fn_metadata.output_schema = _output_schema(_RESULTS[spec.name])
        return tool

    def _plain(self, name: str) -> Any:
        async def call(ctx: Context) -> CallToolResult:
            return _result(await self.call(name, arguments_of(ctx)))

        return call

    def _asking(self, name: str) -> Any:
        """A tool whose deed is confirmed, by the person if the client can ask one."""

        async def look(ctx: Context) -> _Preview:
            arguments = arguments_of(ctx)
            if not can_ask(ctx) or arguments.get("confirm_token"):
                return _Preview()
            shown = await self.call(name, arguments)
            token = getattr(shown.data, "confirm_token", None)
            if token is None:
                return _Preview(answer=shown)
            return _Preview(_question(shown, token), token, shown)

        async def ask(shown: Annotated[_Preview, Resolve(look)]) -> Consent | Elicit[Consent]:
            if shown.question is None:
                return Consent(confirm=False)
            return Elicit(shown.question, Consent)

        async def call(
            ctx: Context,
            shown: Annotated[_Preview, Resolve(look)],
            consent: Annotated[ElicitationResult[Consent], Resolve(ask)],
        ) -> CallToolResult:
            arguments = arguments_of(ctx)
            if shown.answer is None:
                return _result(await self.call(name, arguments))
            if shown.token is None:
                return _result(shown.answer)
            agreed = isinstance(consent, AcceptedElicitation) and consent.data.confirm
            if not agreed:
                return _declined(shown.answer)
            place = {key: arguments[key] for key in _PLACE if key in arguments}
            return _result(await self.call(name, place | {"confirm_token": shown.token}))

        return call

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The answer of a tool."""
        given = dict(arguments)
        workspace, session_id = given.pop("workspace", None), given.pop("session_id", None)

        def work(handlers: "ToolHandlers") -> ToolResult:
            return handlers.call(name, given)

        return await self.run(name, work, workspace, session_id)

    async def run(
        self,
        name: str,
        work: "Callable[[ToolHandlers], ToolResult]",
        workspace: object = None,
        session_id: object = None,
    ) -> ToolResult:
        """What some work on a session answers; it is done in a thread and always to its end."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_MOST_AT_WORK)

        def answer() -> ToolResult:
            try:
                begins = name == _BEGINS
                with self._sessions.handlers(workspace, session_id, begins=begins) as handlers:
                    return work(handlers)
            except HoldfastError as error:
                return ToolResult(None, False, told(error))
            except Exception as error:
                return ToolResult(None, False, unexpected(name, error))

        return await anyio.to_thread.run_sync(answer, limiter=self._limiter)


def arguments_of(ctx: Context) -> dict[str, Any]:
    """The arguments as they were sent."""
    params = ctx.request_context.params or {}
    given = params.get("arguments")
    return dict(given) if isinstance(given, Mapping) else {}


def can_ask(ctx: Context) -> bool:
    capabilities = ctx.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _question(shown: ToolResult, token: str) -> str:
    """The preview without the words about its token: the same plan is the same question."""
    lines = [line for line in shown.output.split("\n") if token not in line]
    plan = getattr(shown.data, "plan_id", "")
    return "\n".join([*lines, f"Do it? (plan {plan})"])


def _declined(shown: ToolResult) -> CallToolResult:
    data: Any = dataclasses.replace(shown.data, confirm_token=None)  # type: ignore[type-var]
    text = "The person was asked and did not agree. Nothing was changed; do not try it again."
    return _result(ToolResult(None, True, text, data))


def _result(answer: ToolResult) -> CallToolResult:
    data: Any = answer.data
    return CallToolResult(
        content=[TextContent(type="text", text=answer.output)],
        structured_content=dataclasses.asdict(data) if answer.success else None,
        is_error=not answer.success,
    )


def _output_schema(kind: type) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema(mode="serialization")
