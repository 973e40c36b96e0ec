"""Every tool, and their definitions in the format of each kind of agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from holdfast.domain.errors import UsageError
from holdfast.interfaces.tools.diff import DIFF
from holdfast.interfaces.tools.history import HISTORY, LIST, SHOW
from holdfast.interfaces.tools.maintenance import CLEANUP, STATS
from holdfast.interfaces.tools.restore import RESET, RESTORE, UNDO
from holdfast.interfaces.tools.save import ANNOTATE, APPROVE, CREATE
from holdfast.interfaces.tools.search import SEARCH
from holdfast.interfaces.tools.settings import AUTO_CONFIGURE
from holdfast.interfaces.tools.tool import Parameter, Tool
from holdfast.interfaces.tools.why import WHY

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

_NUMBERS = ("integer", "number")


def definitions(format: ToolFormat = "openai") -> list[dict[str, Any]]:  # noqa: A002 - CP-10's word
    """Every tool, ready to be passed on: OpenAI's `tools`, Anthropic's `tools`, MCP's list."""
    match format:
        case "openai":
            return [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": input_schema(tool),
                    },
                }
                for tool in TOOLS.values()
            ]
        case "anthropic":
            return [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": input_schema(tool),
                }
                for tool in TOOLS.values()
            ]
        case "mcp":
            return [_mcp(tool) for tool in TOOLS.values()]
    raise UsageError(
        f"there is no tool format {format!r}", hint="formats are: openai, anthropic, mcp"
    )


def input_schema(tool: Tool) -> dict[str, Any]:
    """The arguments of a tool as JSON Schema."""
    return {
        "type": "object",
        "properties": {parameter.name: _schema(parameter) for parameter in tool.parameters},
        "required": [parameter.name for parameter in tool.parameters if parameter.required],
        "additionalProperties": False,
    }


def _mcp(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }


def _schema(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": parameter.description}
    if parameter.type == "strings":
        schema |= {"type": "array", "items": {"type": "string"}}
    else:
        schema["type"] = parameter.type
    if parameter.type in _NUMBERS:
        bounds = {"minimum": parameter.least, "maximum": parameter.most}
    else:
        bounds = {"minLength": parameter.least, "maxLength": parameter.most}
    schema |= {key: bound for key, bound in bounds.items() if bound is not None}
    if isinstance(parameter.default, bool | int | str):
        schema["default"] = parameter.default
    return schema
