"""OpenCode: its hooks are JavaScript; our shim sends what they get and appends what is answered."""

from __future__ import annotations

import json

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect


def render(event: AgentEvent, reply: Reply) -> str:
    if not reply.text:
        return "{}"
    shown = {"notice": reply.for_user} if reply.for_user else {}
    return json.dumps({**shown, "context": reply.text})


DIALECT = Dialect(
    agent="opencode",
    render=render,
    events={
        "toolexecutebefore": EventKind.BEFORE_TOOL,
        "toolexecuteafter": EventKind.AFTER_TOOL,
        "chatmessage": EventKind.MESSAGE,
        "experimentalsessioncompacting": EventKind.COMPACT,
        "sessioncreated": EventKind.SESSION_START,
        "sessionidle": EventKind.TURN_END,
        "sessiondeleted": EventKind.SESSION_END,
    },
    tools={
        "bash": ToolKind.SHELL,
        "edit": ToolKind.EDIT,
        "multiedit": ToolKind.EDIT,
        "patch": ToolKind.EDIT,
        "apply_patch": ToolKind.EDIT,
        "write": ToolKind.WRITE,
        "todowrite": ToolKind.OTHER,
    },
    carries=frozenset({EventKind.MESSAGE, EventKind.BEFORE_TOOL}),
)
