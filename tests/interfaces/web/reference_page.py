"""docs/reference/http-api.md, made from the OpenAPI document.

python -m tests.interfaces.web.reference_page --write
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import Any

from holdfast.interfaces.web.app import describe_api
from tests.project.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "http-api.md"
_HEAD = """\
<!-- Made from the OpenAPI document: python -m tests.interfaces.web.reference_page --write -->

# HTTP routes

Every route of [the HTTP API](../guides/http-api.md). Each one below `/api/`, except
`/api/workspaces`, exists for every workspace too, as `/api/workspaces/{workspace_id}/…`. Every
route can also answer with a problem. A request body has at most 1 MiB.
"""
_METHODS = ("get", "post", "put", "delete")


def reference_page(document: Any) -> str:
    by_tag: dict[str, list[str]] = defaultdict(list)
    for path, operations in document["paths"].items():
        if "{workspace_id}" in path:
            continue
        for method in _METHODS:
            if method in operations:
                by_tag[operations[method]["tags"][0]].append(
                    _operation(method, path, operations[method])
                )
    parts = [_HEAD]
    for tag, found in by_tag.items():
        parts += [f"\n## {tag.capitalize()}\n", *found]
    parts.append("\n## Fields\n")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts.append(_schema(name, schema))
    return "".join(parts)


def _operation(method: str, path: str, operation: Any) -> str:
    lines = [f"\n### {method.upper()} {path}\n\n{operation['summary']}."]
    for code, answer in operation["responses"].items():
        content = answer.get("content", {})
        if code in ("200", "201") and content:
            kind = next(iter(content))
            lines[0] += f" Answers {code} with {_answer(kind, content[kind]['schema'])}."
    rows = [
        f"| `{one['name']}` | {one['in']} | {one['description']} |"
        for one in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        rows.append(f"| | body | {_type(body['schema'])} |")
    if rows:
        lines += ["", "| parameter | in | meaning |", "|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _answer(media_type: str, schema: Any) -> str:
    if media_type == "application/json":
        return _type(schema)
    if "contentSchema" in schema:
        return f"`{media_type}`: {_type(schema['contentSchema'])}"
    return f"`{media_type}`"


def _schema(name: str, schema: Any) -> str:
    lines = [f"\n### {name}\n", f"{_sentence(schema.get('description', ''))}"]
    if schema.get("properties"):
        lines += ["", "| field | type |", "|---|---|"]
        required = schema.get("required", [])
        for field, described in schema["properties"].items():
            mark = "" if field in required else " (can be missing)"
            lines.append(f"| `{field}` | {_type(described)}{mark} |")
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return " ".join(text.split())


def _type(schema: Any) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(kind or "any value")


def main() -> None:
    page = reference_page(json.loads(describe_api()))
    if "--write" in sys.argv:
        PAGE.write_text(page, "utf-8")
    else:
        sys.stdout.write(page)


if __name__ == "__main__":
    main()
