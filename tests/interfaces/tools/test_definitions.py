"""Tool definitions are accepted where they go: valid schemas, the same tools in every format."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from holdfast.domain.errors import UsageError
from holdfast.interfaces import tools as tool_modules
from holdfast.interfaces.tools.handlers import TOOLS, ToolFormat, input_schema
from holdfast.interfaces.tools.tool import Tool
from holdfast.tools import definitions

FORMATS: list[ToolFormat] = ["openai", "anthropic", "mcp"]


def schema_of(definition: dict[str, Any], kind: ToolFormat) -> dict[str, Any]:
    if kind == "openai":
        found: dict[str, Any] = definition["function"]["parameters"]
    else:
        found = definition["input_schema" if kind == "anthropic" else "inputSchema"]
    return found


@pytest.mark.requirement("CP-10")
@pytest.mark.parametrize("kind", FORMATS)
def test_every_tool_is_defined_with_a_valid_schema(kind: ToolFormat) -> None:
    offered = definitions(format=kind)
    assert json.loads(json.dumps(offered)) == offered
    for definition in offered:
        jsonschema.Draft202012Validator.check_schema(schema_of(definition, kind))
    names = [d["function"]["name"] if kind == "openai" else d["name"] for d in offered]
    assert set(names) == set(TOOLS)


@pytest.mark.requirement("CP-10")
def test_every_tool_that_is_offered_has_a_handler() -> None:
    assert all(callable(tool.handler) for tool in TOOLS.values())


@pytest.mark.requirement("CP-10")
@pytest.mark.parametrize("spec", TOOLS.values(), ids=lambda spec: spec.name)
def test_a_definition_teaches_when_to_use_the_tool(spec: Tool) -> None:
    # The names of functions that every provider takes.
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", spec.name)
    assert len(spec.description) > 60
    assert all(len(parameter.description) > 4 for parameter in spec.parameters)
    assert not (spec.read_only and spec.destructive)


@pytest.mark.requirement("CP-10")
@pytest.mark.parametrize("spec", TOOLS.values(), ids=lambda spec: spec.name)
def test_the_example_of_each_argument_is_one_that_is_taken(spec: Tool) -> None:
    example = {parameter.name: parameter.example for parameter in spec.parameters}
    jsonschema.validate(example, input_schema(spec))


@pytest.mark.requirement("CP-10")
def test_an_unknown_format_is_named() -> None:
    unknown: Any = "carrier-pigeon"
    with pytest.raises(UsageError, match="carrier-pigeon"):
        definitions(format=unknown)


@pytest.mark.requirement("MC-1")
def test_what_can_change_or_remove_something_for_good_is_said_to_be_destructive() -> None:
    """Rules of retention decide which checkpoints go."""
    destructive = {name for name, spec in TOOLS.items() if spec.destructive}
    assert destructive == {
        "checkpoint_restore",
        "checkpoint_undo",
        "checkpoint_reset",
        "checkpoint_cleanup",
        "checkpoint_auto_configure",
    }


@pytest.mark.requirement("CP-10")
def test_every_tool_that_a_module_defines_is_offered() -> None:
    found = {
        tool.name
        for module in iter_modules(tool_modules.__path__)
        for tool in vars(import_module(f"{tool_modules.__name__}.{module.name}")).values()
        if isinstance(tool, Tool)
    }
    assert found == set(TOOLS)
