"""Transcripts as agents write them, a line at a time."""

from __future__ import annotations

import json
from typing import Any

AT = "2026-08-15T12:00:0{}.123Z"


def claude_line(uuid: str | None, content: Any, *, role: str = "user", **more: Any) -> bytes:
    line: dict[str, Any] = {
        "type": role,
        "parentUuid": None,
        "sessionId": "d8af951f-13ac-4a41-9748-7a7b9a6cfc00",
        "cwd": "/home/ada/shop",
        "timestamp": AT.format(1),
        "isSidechain": False,
        "message": {"role": role, "content": content},
    } | more
    if uuid is not None:
        line["uuid"] = uuid
    return json.dumps(line).encode() + b"\n"


def codex_line(payload: dict[str, Any], kind: str = "response_item", second: int = 1) -> bytes:
    line = {"timestamp": AT.format(second), "type": kind, "payload": payload}
    return json.dumps(line).encode() + b"\n"


def codex_text(role: str, text: str, second: int = 1) -> bytes:
    part = "output_text" if role == "assistant" else "input_text"
    content = [{"type": part, "text": text}]
    return codex_line({"type": "message", "role": role, "content": content}, second=second)
