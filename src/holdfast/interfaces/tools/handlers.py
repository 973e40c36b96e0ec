"""All tools: their definitions in the format of each kind of agent, and the answers to calls.

Guarantee: a call always gets an answer, whatever was passed and whatever failed. Nothing is raised
into the agent's loop. A failure is reported with its reason and a hint, never as a stack trace.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.domain.errors import (
    HoldfastError,
    NewerStore,
    NoSpace,
    NotFound,
    StoreDamaged,
    StoreUnwritable,
    UsageError,
)
from holdfast.interfaces.tools.arguments import parse_arguments
from holdfast.interfaces.tools.diff import DIFF
from holdfast.interfaces.tools.history import HISTORY, LIST, SHOW
from holdfast.interfaces.tools.maintenance import AUTO_CONFIGURE, CLEANUP, STATS
from holdfast.interfaces.tools.restore import RESET, RESTORE, UNDO
from holdfast.interfaces.tools.save import ANNOTATE, APPROVE, CREATE
from holdfast.interfaces.tools.search import SEARCH, WHY
from holdfast.interfaces.tools.tool import Parameter, Tool, ToolContext
from holdfast.interfaces.tools.wording import as_tool_calls, many_lines, notice_in_calls, one_line

if TYPE_CHECKING:
    from holdfast.api.session import SessionCheckpointer
    from holdfast.domain.agent_events import NoticeClaim
    from holdfast.domain.ids import CheckpointId

_ALL = (
    CREATE,
    LIST,
    HISTORY,
    SHOW,
    SEARCH,
    DIFF,
    WHY,
    RESTORE,
    UNDO,
    ANNOTATE,
    APPROVE,
    RESET,
    STATS,
    CLEANUP,
    AUTO_CONFIGURE,
)
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ALL}
"""By name, in the order in which agents are offered them."""

ToolFormat = Literal["openai", "anthropic", "mcp"]

_LONGEST_REASON = 300


def definitions(format: ToolFormat = "openai") -> list[dict[str, Any]]:  # noqa: A002 - CP-10's word
    """All tools in OpenAI's, Anthropic's or MCP's format."""
    shape = _FORMATS.get(format)
    if shape is None:
        raise UsageError(
            f"unknown tool format: {format!r}", hint="formats are: openai, anthropic, mcp"
        )
    return [shape(tool) for tool in TOOLS.values()]


def input_schema(tool: Tool) -> dict[str, Any]:
    """A tool's arguments as JSON Schema. It is short, because it costs tokens in every
    conversation: calls check lengths, and their answers name the limit."""
    properties = {parameter.name: _schema(parameter) for parameter in tool.parameters}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [parameter.name for parameter in tool.parameters if parameter.required]
    return schema | {"required": required} if required else schema


def _openai(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description}
    return {"type": "function", "function": function | {"parameters": input_schema(tool)}}


def _anthropic(tool: Tool) -> dict[str, Any]:
    schema = input_schema(tool)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _mcp(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool),
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }


_FORMATS: Mapping[str, Callable[[Tool], dict[str, Any]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "mcp": _mcp,
}


def _schema(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.type}
    if parameter.type == "strings":
        schema = {"type": "array", "items": {"type": "string"}}
    if parameter.type == "number" and parameter.most is not None:
        schema |= {"minimum": parameter.least, "maximum": parameter.most}
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.default not in (None, ()):
        schema["default"] = parameter.default
    return schema


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call. `output` is for the model. `data` is for programs: a value of the
    tool's `result` type, or a `ToolFailure`."""

    tool_call_id: str | None
    success: bool
    output: str
    data: object = field(default=None, compare=False)

    def __await__(self) -> Generator[None, None, ToolResult]:
        """Lets `await handlers.call(…)` return the answer too."""
        yield from ()
        return self


class ToolHandlers:
    """The tools of one session; thread-safe.

    >>> ToolHandlers(session).call("checkpoint_restore", {"checkpoint_id": "before-refactor"})
    """

    def __init__(self, session: SessionCheckpointer) -> None:
        self._context = ToolContext(session, session.opened.new_confirmations())

    @property
    def session(self) -> SessionCheckpointer:
        return self._context.session

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        tool_call_id: str | None = None,
    ) -> ToolResult:
        """Do what the model asked for. `arguments` is the object or its JSON text. A call without
        an id gets one. The answer reports restores since the last call, once (RB-10)."""
        if tool_call_id is None:
            tool_call_id = self._context.workspace.new_call_id()
        result, restored = self.answer(name, arguments, tool_call_id)
        context = self._context
        answered = () if restored is None else (restored,)
        try:
            notices = context.workspace.conversation.take_notices(context.session_id, answered)
        except HoldfastError:
            notices = []  # an unreadable conversation must not prevent an answer
        return with_notices(result, notices)

    async def acall(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        tool_call_id: str | None = None,
    ) -> ToolResult:
        """Like `call`, in a thread, so that the event loop continues."""
        from asyncio import to_thread

        return await to_thread(self.call, name, arguments, tool_call_id)

    def answer(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        tool_call_id: str | None = None,
    ) -> tuple[ToolResult, CheckpointId | None]:
        """The answer alone, and the restore record that it reports. Notices stay open."""
        try:
            if not isinstance(name, str) or name not in TOOLS:
                return failed(UsageError(_unknown(name)), tool_call_id, _unknown(name)), None
            tool = TOOLS[name]
            answer = tool.handler(self._context, parse_arguments(tool, arguments))
            return ToolResult(tool_call_id, True, answer.text, answer.data), answer.restored
        except HoldfastError as error:
            return failed(error, tool_call_id), None
        except Exception as error:
            return unexpected(name, error, tool_call_id), None

    def claim_notices(self, restored: CheckpointId | None) -> NoticeClaim | None:
        """Notices for an answer that may not reach the agent. `settle_notices` says whether it did;
        otherwise the next answer has them."""
        context = self._context
        answered = () if restored is None else (restored,)
        try:
            return context.workspace.conversation.claim_notices(context.session_id, answered)
        except HoldfastError:
            return None  # as in `call`

    def settle_notices(self, claim: NoticeClaim, *, delivered: bool) -> None:
        self._context.workspace.conversation.settle_notices(claim, delivered=delivered)


def without_store(name: str, workspace: Path, session_id: str) -> ToolResult:
    """A read-only tool's answer in a workspace without checkpoints; no store is created.
    `session_id` is the session that would be used, or empty if it is unknown."""
    answer = TOOLS[name].without_store if name in TOOLS else None
    if answer is not None:
        empty = answer(workspace, session_id)
        return ToolResult(None, True, empty.text, empty.data)
    missing = NotFound(
        f"{workspace} has no checkpoints yet", hint='to create one: holdfast checkpoint "why"'
    )
    return failed(missing)


def with_notices(result: ToolResult, notices: Sequence[str]) -> ToolResult:
    """The answer with notices for the agent, which name tool calls instead of commands."""
    if not notices:
        return result
    return replace(result, output="\n\n".join((result.output, *map(notice_in_calls, notices))))


def error_text(error: HoldfastError) -> str:
    """An error as text that a model can act on."""
    hint = f"\nWhat to do: {many_lines(as_tool_calls(error.hint))}" if error.hint else ""
    return f"Not done ({error.code}): {many_lines(error.message)}{hint}"


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """A failed call. `error` is `corruption_detected`, `insufficient_space` or the `code`.
    `degraded_mode`: the store is damaged, full or read-only, so saves fail until `suggested_action`
    (repair or cleanup) is done; reading may still work."""

    error: str
    code: str
    message: str
    hint: str | None = None
    degraded_mode: bool = False
    corruption_detected: bool = False
    suggested_action: str | None = None
    cleanup_suggested: bool = False
    success: bool = False


def failed(
    error: HoldfastError, tool_call_id: str | None = None, output: str | None = None
) -> ToolResult:
    """The answer to a call that failed with a Holdfast error."""
    corrupt = isinstance(error, StoreDamaged) and not isinstance(error, NewerStore)
    full = isinstance(error, NoSpace)
    data = ToolFailure(
        error="corruption_detected" if corrupt else "insufficient_space" if full else error.code,
        code=error.code,
        message=many_lines(error.message),
        hint=many_lines(as_tool_calls(error.hint)) if error.hint else None,
        degraded_mode=corrupt or full or isinstance(error, StoreUnwritable),
        corruption_detected=corrupt,
        suggested_action="repair" if corrupt else "cleanup" if full else None,
        cleanup_suggested=full,
    )
    text = error_text(error) if output is None else output
    if full and "checkpoint_cleanup" not in text:
        text += "\nTo free space: checkpoint_cleanup {} previews which checkpoints have expired."
    return ToolResult(tool_call_id, False, text, data)


def unexpected(name: str, error: Exception, tool_call_id: str | None = None) -> ToolResult:
    """The answer to a call that failed with an unexpected error, without its stack trace."""
    reason = one_line(str(error))[:_LONGEST_REASON]
    text = (
        f"{name} failed unexpectedly: {type(error).__name__}{': ' if reason else ''}{reason}.\n"
        "What to do: continue if you can, and tell the user that this call failed."
    )
    return ToolResult(tool_call_id, False, text, ToolFailure("error", "error", text))


def error_data(error: HoldfastError) -> dict[str, str | None]:
    """Like `error_text`, as data for programs that pass it to a model."""
    return error.to_dict() | {"hint": as_tool_calls(error.hint) if error.hint else None}


def _unknown(name: object) -> str:
    close = get_close_matches(name[:100], TOOLS, 1) if isinstance(name, str) else []
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"There is no tool {ascii(name)[:100]}.{meant} Tools are: {', '.join(TOOLS)}."
