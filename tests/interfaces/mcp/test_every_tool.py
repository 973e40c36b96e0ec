"""Every tool by the official client, over both transports and with both kinds of client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp import Client
from mcp_types import TextContent

from holdfast.interfaces.tools.handlers import TOOLS
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import Era, http_server, stdio_client


class Scenario:
    """One client's walk through all tools; every answer is checked against its schema."""

    def __init__(self, client: Client, workspace: Path) -> None:
        self._client = client
        self._workspace = workspace
        self._schemas: dict[str, dict[str, Any]] = {}
        self.called: set[str] = set()

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        self.called.add(name)
        result = await self._client.call_tool(name, arguments)
        assert isinstance(result.content[0], TextContent)
        assert not result.is_error, result.content[0].text
        found: dict[str, Any] = result.structured_content or {}
        jsonschema.validate(found, self._schemas[name])
        return found

    async def walk(self) -> None:
        await self._look_at_what_is_offered()
        file = self._workspace / "src" / "app.py"
        made = await self.call("checkpoint_create", reasoning="good", name="good", tags=["t"])
        assert made["checkpoint"]["name"] == "good"
        assert made["deduplicated"] is False
        again = await self.call("checkpoint_create", reasoning="the same", reuse=True)
        assert (again["checkpoint"]["id"], again["deduplicated"]) == (
            made["checkpoint"]["id"],
            True,
        )
        fill(file, b"broken\n")
        assert (await self.call("checkpoint_diff", content=True))["total"] == 1
        await self._restore("checkpoint_restore", ref="good")
        assert file.read_bytes() == b"print(1)\n"
        await self.call("checkpoint_undo")
        assert file.read_bytes() == b"broken\n"
        note = await self.call("checkpoint_annotate", ref="good", text="it was good")
        assert (note["number"], note["revision"]) == (1, 1)
        approved = await self.call("checkpoint_approve", message="as it should be")
        assert approved["new_round"] == "session_2"
        fill(file, b"worse\n")
        await self._restore("checkpoint_reset")
        assert file.read_bytes() == b"broken\n"
        await self._look_back()
        preview = await self.call("checkpoint_cleanup")
        token = preview["confirm_token"]
        assert (await self.call("checkpoint_cleanup", confirm_token=token))["done"]
        set_to = {"auto_files": 12}
        await self.call("checkpoint_auto_configure", settings=set_to)
        settings = (await self.call("checkpoint_auto_configure"))["settings"]
        assert {one["name"]: one["value"] for one in settings}.items() >= set_to.items()
        assert self.called == set(TOOLS)
        await self._read_resources_and_prompts()

    async def _look_at_what_is_offered(self) -> None:
        offered = {tool.name: tool for tool in (await self._client.list_tools()).tools}
        assert offered.keys() == TOOLS.keys()
        for name, tool in offered.items():
            spec = TOOLS[name]
            assert tool.title == spec.title
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is spec.read_only
            assert tool.annotations.destructive_hint is spec.destructive
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            assert tool.input_schema["properties"].keys() >= {"workspace", "session_id"}
            assert tool.output_schema is not None
            self._schemas[name] = tool.output_schema

    async def _restore(self, tool: str, **arguments: Any) -> None:
        preview = await self.call(tool, **arguments)
        assert not preview["done"]
        done = await self.call(tool, confirm_token=preview["confirm_token"])
        assert done["done"]

    async def _look_back(self) -> None:
        first = await self.call("checkpoint_list", limit=1, records=True)
        assert len(first["checkpoints"]) == 1
        second = await self.call("checkpoint_list", limit=1, cursor=first["next_cursor"])
        assert second["checkpoints"][0]["id"] != first["checkpoints"][0]["id"]
        assert (await self.call("checkpoint_history"))["complete"]
        assert (await self.call("checkpoint_show", ref="good"))["checkpoint"]["tags"] == ["t"]
        found = await self.call("checkpoint_search", query="good")
        assert found["hits"][0]["checkpoint"]["name"] == "good"
        why = await self.call("checkpoint_why", path="src/app.py", line=1)
        assert why["spans"][0]["text"] == "broken"
        assert why["spans"][0]["checkpoint"]["kind"] == "safety"
        stats = await self.call("checkpoint_stats")
        assert stats["checkpoints"] == 2  # the named one, and the approved one

    async def _read_resources_and_prompts(self) -> None:
        resources = (await self._client.list_resources()).resources
        templates = (await self._client.list_resource_templates()).resource_templates
        assert {str(one.uri) for one in resources} == {
            "holdfast://checkpoints",
            "holdfast://timeline",
        }
        assert len(templates) == 3
        for uri, part in (
            ("holdfast://checkpoints", '"checkpoints"'),
            ("holdfast://timeline", "restore"),
            ("holdfast://checkpoints/good", '"src/app.py"'),
            ("holdfast://diff/good/workspace", "+broken"),
        ):
            (content,) = (await self._client.read_resource(uri)).contents
            assert part in content.text  # type: ignore[union-attr]
        prompts = {prompt.name for prompt in (await self._client.list_prompts()).prompts}
        assert prompts == {"protect_risky_change", "recover_work", "review_session"}
        asked = await self._client.get_prompt("recover_work", {"problem": "src is gone"})
        assert "src is gone" in asked.messages[0].content.text  # type: ignore[union-attr]


@pytest.mark.requirement("MC-1", "MC-2")
@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_every_tool_answers_over_standard_input_and_output(workspace: Path, era: Era) -> None:
    async def walk() -> None:
        async with stdio_client(workspace, era) as client:
            await Scenario(client, workspace).walk()

    anyio.run(walk)


@pytest.mark.requirement("MC-1", "MC-2")
@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_every_tool_answers_over_http(workspace: Path, era: Era) -> None:
    async def walk() -> None:
        async with server.client(era) as client:
            await Scenario(client, workspace).walk()

    with http_server(workspace) as server:
        anyio.run(walk)
