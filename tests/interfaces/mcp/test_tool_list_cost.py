"""What the list of tools costs a conversation, which has it in its context from the beginning.

Tokens are estimated: one for every 3.8 characters of the compact JSON that the server sends. The
tokenizers of four model families (cl100k, o200k, Claude 2, DeepSeek) need one for every 4.2 to 4.6
characters of names, descriptions and inputs, and for every 3.9 to 4.5 of the whole list, so each of
them counts fewer tokens. Newer tokenizers may count differently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from mcp import Client

from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions
from tests.support.clocks import StandingClock

pytestmark = pytest.mark.requirement("MC-1")

CHARACTERS_PER_TOKEN = 3.8
INPUTS = ("name", "description", "inputSchema")


def tokens(value: object) -> float:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return len(text) / CHARACTERS_PER_TOKEN


@pytest.fixture
def listed(sessions: ServedSessions) -> list[dict[str, Any]]:
    server = make_server(sessions, Admission(StandingClock().monotonic_ns))

    async def ask() -> list[dict[str, Any]]:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
        return [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]

    return anyio.run(ask)


def test_names_descriptions_and_inputs_fit_into_2500_tokens(
    listed: list[dict[str, Any]],
) -> None:
    assert tokens([{key: tool[key] for key in INPUTS} for tool in listed]) <= 2_500


def test_the_whole_list_with_output_schemas_fits_into_6000_tokens(
    listed: list[dict[str, Any]],
) -> None:
    assert tokens({"tools": listed}) <= 6_000


def test_every_field_of_an_answer_has_its_type_somewhere_in_the_list(
    listed: list[dict[str, Any]],
) -> None:
    """A definition that is spelled out elsewhere says where."""
    for tool in listed:
        for name, schema in _objects(tool["outputSchema"]):
            words = schema.get("description", "")
            assert (
                "properties" in schema
                or words
                or "additionalProperties" in schema
                or (
                    name in ("tool_calls", "value")  # free by nature
                )
            ), (tool["name"], name)
            if words.startswith("As in "):
                where = words.removeprefix("As in ").rstrip(".")
                assert [one for one in listed if one["name"] == where]


def _objects(schema: Mapping[str, Any], name: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """Every object in a schema, with the name of the field that holds it."""
    found = [(name, schema)] if "object" in schema.get("type", ()) else []
    for field, inner in schema.get("properties", {}).items():
        found += _objects(inner, field)
    for inner in (schema.get("items"), *schema.get("anyOf", ())):
        if isinstance(inner, Mapping):
            found += _objects(inner, name)
    return found
