"""The OpenAPI 3.1 document: parameters and bodies from FastAPI, answers from
`holdfast.api.views`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from holdfast import __version__
from holdfast.interfaces.web.json_schema import Schemas
from holdfast.interfaces.web.problems import MEDIA_TYPE, Problem
from holdfast.interfaces.web.routing import JSON, Route

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
