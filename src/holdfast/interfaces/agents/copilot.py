"""GitHub Copilot: camel case, arguments as an object or as JSON in a text, no id of a tool call.

A hook before a tool that does not end with status 0 denies the tool, so nothing may go wrong here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect

_EXIT = re.compile(r"<shellId: [^<>]* completed with exit code (\d+)>\s*\Z")


def flatten(payload: dict[str, Any]) -> dict[str, Any]:
    """A payload does not name its event: if the command line did not either, its fields tell."""
    payload = _with_exit(payload)
    if any(name in payload for name in ("hook_event_name", "hookEventName")):
        return payload
    signs = (
        ("stopReason", "agentStop"),
        ("toolResult", "postToolUse"),
        ("tool_result", "postToolUse"),
        ("error", "postToolUseFailure"),
        ("toolName", "preToolUse"),
        ("tool_name", "preToolUse"),
        ("prompt", "userPromptSubmitted"),
        ("source", "sessionStart"),
        ("reason", "sessionEnd"),
    )
    named = next((event for sign, event in signs if sign in payload), "")
    return {**payload, "hook_event_name": named}


def _with_exit(payload: dict[str, Any]) -> dict[str, Any]:
    """A command that failed is a success here; how it ended stands in the text for the model."""
    for name, text in (("toolResult", "textResultForLlm"), ("tool_result", "text_result_for_llm")):
        result = payload.get(name)
        if isinstance(result, dict) and (ended := _EXIT.search(str(result.get(text, "")))):
            return {**payload, name: {**result, "exit_code": int(ended[1])}}
    return payload


def render(event: AgentEvent, reply: Reply) -> str:
    return json.dumps({"additionalContext": reply.text}) if reply.text else "{}"


DIALECT = Dialect(
    agent="copilot",
    render=render,
    events={
        "userpromptsubmitted": EventKind.MESSAGE,
        "agentstop": EventKind.TURN_END,
    },
    tools={
        "bash": ToolKind.SHELL,
        "powershell": ToolKind.SHELL,
        "Bash": ToolKind.SHELL,
        "create": ToolKind.WRITE,
        "Write": ToolKind.WRITE,
        "edit": ToolKind.EDIT,
        "Edit": ToolKind.EDIT,
        "apply_patch": ToolKind.EDIT,
        "read_bash": ToolKind.OTHER,
        "write_bash": ToolKind.SHELL,
    },
    carries=frozenset({EventKind.SESSION_START, EventKind.AFTER_TOOL}),
    flatten=flatten,
)
