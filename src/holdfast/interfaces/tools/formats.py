"""The tools in the form that each kind of agent is given them."""

from __future__ import annotations

from typing import Any, Literal

from holdfast.domain.errors import UsageError
from holdfast.interfaces.tools.specs import SPECS, Parameter, ToolSpec

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
                        "name": spec.name,
                        "description": spec.description,
                        "parameters": input_schema(spec),
                    },
                }
                for spec in SPECS.values()
            ]
        case "anthropic":
            return [
                {
                    "name": spec.name,
                    "description": spec.description,
                    "input_schema": input_schema(spec),
                }
                for spec in SPECS.values()
            ]
        case "mcp":
            return [_mcp(spec) for spec in SPECS.values()]
    raise UsageError(
        f"there is no tool format {format!r}", hint="formats are: openai, anthropic, mcp"
    )


def input_schema(spec: ToolSpec) -> dict[str, Any]:
    """The arguments of a tool as JSON Schema."""
    return {
        "type": "object",
        "properties": {parameter.name: _schema(parameter) for parameter in spec.parameters},
        "required": [parameter.name for parameter in spec.parameters if parameter.required],
        "additionalProperties": False,
    }


def _mcp(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": input_schema(spec),
        "annotations": {
            "title": spec.title,
            "readOnlyHint": spec.read_only,
            "destructiveHint": spec.destructive,
            "idempotentHint": spec.idempotent,
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
