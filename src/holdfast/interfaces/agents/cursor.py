"""Cursor: names in camel case; an empty answer counts as a failed hook, so `{}` is the least.

It also runs what `.claude/settings.json` sets up, with the same payload as its own.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect


def flatten(payload: dict[str, Any]) -> dict[str, Any]:
    """Its shell events have the command at the top."""
    if "command" in payload and "tool_name" not in payload:
        return {**payload, "tool_name": "Shell", "tool_input": {"command": payload["command"]}}
    if "file_path" in payload and "tool_name" not in payload:
        return {**payload, "tool_name": "Edit", "tool_input": {"file_path": payload["file_path"]}}
    return payload


def render(event: AgentEvent, reply: Reply) -> str:
    if not reply.text:
        return "{}"
    shown = {"user_message": reply.for_user} if reply.for_user else {}
    return json.dumps({**shown, "additional_context": reply.text})


DIALECT = Dialect(
    agent="cursor",
    render=render,
    events={
        "beforesubmitprompt": EventKind.MESSAGE,
        "beforeshellexecution": EventKind.BEFORE_TOOL,
        "aftershellexecution": EventKind.AFTER_TOOL,
        "afterfileedit": EventKind.AFTER_TOOL,
    },
    tools={
        "Shell": ToolKind.SHELL,
        "Write": ToolKind.WRITE,
        "Edit": ToolKind.EDIT,
        "Delete": ToolKind.WRITE,
        "EditNotebook": ToolKind.NOTEBOOK,
    },
    carries=frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL}),
    flatten=flatten,
)
