"""Codex: Claude's format; edits are patches whose text stands in `tool_input.command`."""

from __future__ import annotations

import json

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect


def render(event: AgentEvent, reply: Reply) -> str:
    if not reply.text:
        return "{}"
    output = {"hookEventName": event.name, "additionalContext": reply.text}
    shown = {"systemMessage": reply.for_user} if reply.for_user else {}
    return json.dumps({**shown, "hookSpecificOutput": output})


DIALECT = Dialect(
    agent="codex",
    render=render,
    tools={
        "Bash": ToolKind.SHELL,
        "apply_patch": ToolKind.EDIT,
        "Write": ToolKind.WRITE,
        "Edit": ToolKind.EDIT,
    },
    carries=frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL}),
)
