"""Cline: one script an event; what belongs to the event is nested under its name.

A conversation that is resumed gets a new `taskId`, and so does each agent that another one starts;
the session that they belong to is told beside it. An agent starts with each message of the user;
what was typed is not told, except for a message that is sent while the agent works.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect

_STARTS = ("agent_start", "agent_resume")
_NESTED = ("preToolUse", "postToolUse", "userPromptSubmit", "tool_call", "tool_result")


def flatten(payload: dict[str, Any]) -> dict[str, Any]:
    flat = dict(payload)
    for name in _NESTED:
        inner = payload.get(name)
        if isinstance(inner, dict):
            flat.update(inner)
            if "input" in inner:
                flat["parameters"] = inner["input"]
            if "name" in inner:
                flat["toolName"] = inner["name"]
            if "id" in inner:
                flat["tool_use_id"] = inner["id"]
    context = payload.get("sessionContext")
    if isinstance(context, dict) and isinstance(context.get("rootSessionId"), str):
        flat["session_id"] = context["rootSessionId"]
    if payload.get("hookName") in _STARTS:
        if payload.get("parent_agent_id"):
            flat["hookName"] = "session_start"  # another agent's work, not a message
        else:
            flat["turn_id"] = payload.get("timestamp")
    for part in flat["output"] if isinstance(flat.get("output"), list) else ():
        if isinstance(part, dict) and part.get("success") is False:  # one of several commands
            flat |= {"success": False, "result": part.get("error") or "failed"}
    return flat


def render(event: AgentEvent, reply: Reply) -> str:
    if not reply.text:
        return json.dumps({"cancel": False})
    return json.dumps({"cancel": False, "contextModification": reply.text})


DIALECT = Dialect(
    agent="cline",
    render=render,
    events={
        "agentstart": EventKind.MESSAGE,
        "agentresume": EventKind.MESSAGE,
        "toolcall": EventKind.BEFORE_TOOL,
        "toolresult": EventKind.AFTER_TOOL,
        "promptsubmit": EventKind.MESSAGE,
        "agentend": EventKind.TURN_END,
        "taskcomplete": EventKind.TURN_END,
        "sessionshutdown": EventKind.SESSION_END,
    },
    tools={
        "execute_command": ToolKind.SHELL,
        "run_commands": ToolKind.SHELL,
        "write_to_file": ToolKind.WRITE,
        "replace_in_file": ToolKind.EDIT,
        "apply_patch": ToolKind.EDIT,
        "editor": ToolKind.EDIT,
    },
    carries=frozenset({EventKind.BEFORE_TOOL}),  # what is answered to a start reaches no model
    flatten=flatten,
)
