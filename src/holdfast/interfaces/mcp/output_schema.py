"""The schemas of tool results, as short as possible, because they cost tokens in every
conversation.

pydantic generates them from the results' dataclasses. Then they are reduced to names and types:

    titles, docstrings, defaults                   removed; the names say what they mean
    {"anyOf": [{"type": T}, {"type": "null"}]}     becomes {"type": [T, "null"]}
    a long definition that another tool has        becomes a plain object with a description that
    names the tool
    a result that another tool returns too         keeps its plain fields, and names the tool

Guarantee: every answer matches its schema, even that of a failed call: no field is required, and
others are allowed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter

from holdfast.interfaces.tools.tool import Tool

_NOISE = ("title", "description", "required", "default", "additionalProperties")
_REF = "#/$defs/"
_LONG = 150
_PLAIN = ("string", "integer", "number", "boolean", "null")

Schema = dict[str, Any]


def output_schemas(tools: Iterable[Tool]) -> dict[str, Schema]:
    """By tool name, in the order in which tools are offered."""
    spelled_out: dict[str, str] = {}
    schemas: dict[str, Schema] = {}
    for tool in tools:
        schema = TypeAdapter(tool.result).json_schema(mode="serialization")
        definitions = {name: _reduced(one) for name, one in schema.pop("$defs", {}).items()}
        inliner = _DefinitionInliner(tool.name, definitions, spelled_out)
        reduced = _reduced(schema)
        known = spelled_out.setdefault(tool.result.__name__, tool.name)
        if known != tool.name:
            reduced = _plain_part(reduced) | {"description": f"More as in {known}."}
        schemas[tool.name] = inliner.inline(reduced)
    return schemas


def _plain_part(schema: Schema) -> Schema:
    plain = {
        name: one for name, one in schema["properties"].items() if set(_types(one)) <= set(_PLAIN)
    }
    return schema | {"properties": plain}


def _types(schema: Schema) -> list[str]:
    found = schema.get("type", "object")
    return found if isinstance(found, list) else [found]


def _reduced(schema: Any) -> Any:
    """A schema without titles, descriptions and defaults."""
    if not isinstance(schema, dict):
        return schema
    found: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            found[key] = {name: _reduced(one) for name, one in value.items()}
        elif key == "anyOf":
            found |= _union([_reduced(one) for one in value])
        elif key not in _NOISE:
            found[key] = _reduced(value)
    return found


def _union(parts: list[Schema]) -> Schema:
    """A list of types, if at most one part is more than a type."""
    plain = [part["type"] for part in parts if part.keys() == {"type"}]
    others = [part for part in parts if part.keys() != {"type"}]
    if not others:
        return {"type": plain}
    if len(others) == 1 and isinstance(others[0].get("type"), str):
        return others[0] | {"type": [others[0]["type"], *plain]}
    return {"anyOf": parts}


class _DefinitionInliner:
    """Replaces references with their definitions, in the schema of one tool."""

    def __init__(
        self, tool: str, definitions: dict[str, Schema], spelled_out: dict[str, str]
    ) -> None:
        self._tool = tool
        self._definitions = definitions
        self._spelled_out = spelled_out
        self._here: set[str] = set()

    def inline(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self.inline(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return self._definition(str(schema["$ref"]).removeprefix(_REF))
        placed = {key: self.inline(value) for key, value in schema.items()}
        return placed | _union(placed.pop("anyOf")) if "anyOf" in placed else placed

    def _definition(self, name: str) -> Schema:
        found: Schema = self.inline(self._definitions[name])
        if len(json.dumps(found)) < _LONG:
            return found
        where = self._spelled_out.setdefault(name, self._tool)
        if where == self._tool and name not in self._here:
            self._here.add(name)
            return found
        words = "above" if where == self._tool else f"in {where}"
        return {"type": "object", "description": f"As {words}."}
