"""The OpenAPI 3.1 document: parameters and bodies from FastAPI, answers from the typed dictionaries
of `holdfast.api.views`.

There is one schema per typed dictionary, with its name. Examples come from one table by field name,
so that every route has one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints
from typing import is_typeddict as is_typed_dict

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from holdfast import __version__
from holdfast.interfaces.web.problems import MEDIA_TYPE, Problem
from holdfast.interfaces.web.routing import JSON, Route

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
_FAILURES = {
    "400": "The request is not valid",
    "401": "Not signed in",
    "403": "Another host or origin, or the token lacks a scope",
    "404": "Not found",
    "409": "Refused; the hint says what to do",
    "413": "The body is too large",
    "415": "The body is not JSON",
    "429": "Too many requests",
    "431": "The headers are too large",
    "500": "The store cannot be used",
    "503": "The store is busy",
    "507": "No space left",
}
_KNOWN = {"304": {"description": "Not changed since the version in If-None-Match"}}
_LINKED = (
    "show_checkpoint",
    "change_checkpoint",
    "annotate",
    "compare_with",
    "preview_rollback",
    "rollback",
    "delete_checkpoint",
)
"""The operations on a new checkpoint."""
_OTHERS = "/api/workspaces/{workspace_id}"
_WORKSPACE_PARAMETER = {
    "name": "workspace_id",
    "in": "path",
    "required": True,
    "description": "The id of a workspace, from /api/workspaces.",
    "schema": {"type": "string"},
}


def openapi_document(app: FastAPI, routes: Sequence[Route]) -> bytes:
    found: dict[str, Any] = get_openapi(
        title="Holdfast",
        version=__version__,
        openapi_version="3.1.0",
        summary="Checkpoints of a workspace: history, diffs, restores, rounds and events.",
        routes=app.routes,
    )
    schemas = Schemas()
    problem = {MEDIA_TYPE: {"schema": schemas.schema(Problem)}}
    for route in routes:
        operation = found["paths"][route.path][route.method.lower()]
        operation["summary"] = route.summary
        operation["tags"] = [route.tag]
        operation["operationId"] = route.endpoint.__name__
        operation["security"] = [{"token": [route.scope]}, {"cookie": []}]
        operation["responses"] = {
            str(route.status): _answer(route.summary, route.answer, route, schemas),
            **{
                status: {"description": why, "content": problem}
                for status, why in _FAILURES.items()
            },
            **(_KNOWN if route.method == "GET" and _has_tag(route) else {}),
            **{
                str(status): _answer(one.meaning, one.view, route, schemas)
                for status, one in route.other_answers.items()
            },
        }
        if operation["operationId"] == "create_checkpoint":
            operation["responses"][str(route.status)]["links"] = _links_to_new_checkpoint()
    _name_operations(found["paths"])
    for path in [path for path in found["paths"] if path.startswith("/api/")]:
        if path != "/api/workspaces":
            found["paths"][path.replace("/api", _OTHERS, 1)] = _of_other_workspace(
                found["paths"][path]
            )
    components = found.setdefault("components", {})
    own = components.setdefault("schemas", {})
    own.pop("HTTPValidationError", None)
    own.pop("ValidationError", None)
    own.update(schemas.definitions)
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "holdfast_PORT"},
    }
    return json.dumps(found, separators=(",", ":")).encode()


def _links_to_new_checkpoint() -> dict[str, Any]:
    given = {"session_id": "$request.path.session_id", "checkpoint_id": "$response.body#/id"}
    return {name: {"operationId": name, "parameters": dict(given)} for name in _LINKED}


def _has_tag(route: Route) -> bool:
    return JSON in route.media_types or route.path.endswith("/raw")


def _answer(meaning: str, view: Any, route: Route, schemas: Schemas) -> dict[str, Any]:
    if view is None:
        content: dict[str, Any] = {one: {"schema": {}} for one in route.media_types}
    elif view is Problem:
        content = {MEDIA_TYPE: {"schema": schemas.schema(Problem)}}
    elif route.media_types != (JSON,):
        schema = {"contentMediaType": JSON, "contentSchema": schemas.schema(view)}
        content = {one: {"schema": schema} for one in route.media_types}
    else:
        schema = schemas.schema(view)
        content = {JSON: {"schema": schema, "example": schemas.example(schema)}}
    return {"description": meaning, "content": content}


def _name_operations(paths: dict[str, Any]) -> None:
    """Each operation has its own id, even if two addresses share an endpoint."""
    seen: set[str] = set()
    for operations in paths.values():
        for operation in operations.values():
            name = operation["operationId"]
            operation["operationId"] = f"{name}_2" if name in seen else name
            seen.add(name)


def _of_other_workspace(operations: dict[str, Any]) -> dict[str, Any]:
    copied = deepcopy(operations)
    for operation in copied.values():
        operation["operationId"] += "_in_workspace"
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                link["operationId"] += "_in_workspace"
                link["parameters"]["workspace_id"] = "$request.path.workspace_id"
        operation["parameters"] = [_WORKSPACE_PARAMETER, *operation.get("parameters", [])]
    return copied


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
