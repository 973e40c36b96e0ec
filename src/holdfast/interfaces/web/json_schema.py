"""JSON Schemas of the answers, generated from the typed dictionaries of `holdfast.api.views`.

There is one schema per typed dictionary, with its name. Examples come from one table by field name,
so that every route has one.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints
from typing import is_typeddict as is_typed_dict

Schema = dict[str, Any]
_PREFIX = "#/components/schemas/"
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
    object: {},
}
_EXAMPLES: dict[str, Any] = {
    "id": "3f2a9c81d4b7",
    "session_id": "login-7d1f",
    "created_at": "2026-11-15T09:30:00.000000+00:00",
    "timestamp": "2026-11-15T09:30:00.000000+00:00",
    "at": "2026-11-15T09:30:00.000000+00:00",
    "reasoning": "before the login rewrite",
    "reasoning_preview": "before the login rewrite",
    "path": "src/app.py",
    "title": "Rewrite the login",
    "agent": "my-agent",
    "status": "active",
    "name": "before-login",
    "checkpoint_name": "before-login",
    "kind": "tool",
    "type": "auto",
    "confidence": 0.8,
    "branch": "main",
    "elapsed_ms": 12.5,
    "code": "unknown_reference",
    "url": "http://127.0.0.1:7348",
}


class Schemas:
    """Collects the schemas that routes refer to."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def schema(self, kind: Any) -> Schema:
        """A schema, or a reference to that of a typed dictionary."""
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        if is_typed_dict(kind):
            if kind.__name__ not in self.definitions:
                self.definitions[kind.__name__] = {}  # it may refer to itself
                self.definitions[kind.__name__] = self._of_typed_dict(kind)
            return {"$ref": _PREFIX + kind.__name__}
        origin, given = get_origin(kind), get_args(kind)
        if origin is NotRequired:
            return self.schema(given[0])
        if origin is list:
            return {"type": "array", "items": self.schema(given[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.schema(given[1])}
        if origin is Literal:
            return {"enum": list(given)}
        if origin in (Union, UnionType):
            return {"anyOf": [self.schema(one) for one in given]}
        raise TypeError(f"no schema for {kind!r}")

    def _of_typed_dict(self, kind: Any) -> Schema:
        fields = get_type_hints(kind, include_extras=True)
        schema: Schema = {
            "type": "object",
            "properties": {name: self.schema(one) for name, one in fields.items()},
            "required": sorted(kind.__required_keys__),
        }
        if kind.__doc__:
            schema["description"] = " ".join(kind.__doc__.split())
        return schema

    def example(self, schema: Schema, name: str = "") -> Any:
        """An example value for the schema."""
        if "$ref" in schema:
            return self.example(self.definitions[schema["$ref"].removeprefix(_PREFIX)], name)
        if "anyOf" in schema:
            return self.example(schema["anyOf"][0], name)
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type")
        if kind == "object":
            properties = schema.get("properties", {})
            return {key: self.example(one, key) for key, one in properties.items()}
        if kind == "array":
            return [self.example(schema["items"], name)]
        known = _EXAMPLES.get(name)
        defaults = {"string": "text", "integer": 3, "number": 1.5, "boolean": True}
        default = defaults.get(str(kind))
        return known if type(known) is type(default) else default
