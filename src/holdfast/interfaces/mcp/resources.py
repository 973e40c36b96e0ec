"""What a client can read without calling a tool: checkpoints, differences and the timeline."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError

from holdfast.interfaces.mcp.tools import ServedTools
from holdfast.tools.answers import ToolResult

_JSON = "application/json"
_TEXT = "text/plain"
_NOW = "workspace"


def add_resources(server: MCPServer[Any], tools: ServedTools) -> None:
    async def read(name: str, **arguments: Any) -> str:
        return (await _answered(tools, name, arguments)).output

    async def read_json(name: str, **arguments: Any) -> str:
        answer: Any = (await _answered(tools, name, arguments)).data
        return json.dumps(asdict(answer), ensure_ascii=False)

    @server.resource(
        "holdfast://checkpoints",
        name="checkpoints",
        title="Checkpoints",
        description="The newest checkpoints of the session, with their reasons.",
        mime_type=_JSON,
    )
    async def checkpoints() -> str:
        return await read_json("checkpoint_list", limit=100)

    @server.resource(
        "holdfast://timeline",
        name="timeline",
        title="Timeline",
        description="Checkpoints and what restores left behind, in order, newest first.",
        mime_type=_TEXT,
    )
    async def timeline() -> str:
        return await read("checkpoint_list", limit=200, records=True)

    @server.resource(
        "holdfast://checkpoints/{ref}",
        name="checkpoint",
        title="One checkpoint",
        description="Everything about a checkpoint: an id, a name, HEAD, initial.",
        mime_type=_JSON,
    )
    async def checkpoint(ref: str) -> str:
        return await read_json("checkpoint_show", ref=ref, files=True, limit=1000)

    @server.resource(
        "holdfast://diff/{from_ref}/{to_ref}",
        name="diff",
        title="Difference",
        description="The changed lines between two checkpoints, or with `workspace` as the second "
        "between a checkpoint and the workspace as it is now.",
        mime_type=_TEXT,
    )
    async def diff(from_ref: str, to_ref: str) -> str:
        new = None if to_ref == _NOW else to_ref
        return await read("checkpoint_diff", from_ref=from_ref, to_ref=new, content=True)


async def _answered(tools: ServedTools, name: str, arguments: dict[str, Any]) -> ToolResult:
    answer = await tools.call(name, arguments)
    if not answer.success:
        raise ResourceError(answer.output)
    return answer
