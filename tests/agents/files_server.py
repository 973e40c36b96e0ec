"""An MCP server with one tool, which writes a file: the least that agents talk to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_TOOL = {
    "name": "write_file",
    "description": "Write a file",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    method, given = message.get("method"), message.get("params") or {}
    if method == "initialize":
        version = given.get("protocolVersion", "2025-06-18")
        told = {"name": "files", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": told}
    if method == "tools/list":
        return {"tools": [_TOOL]}
    if method == "tools/call":
        Path(given["arguments"]["path"]).write_text(given["arguments"]["content"])
        return {"content": [{"type": "text", "text": "written"}]}
    return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(
            json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True
        )
