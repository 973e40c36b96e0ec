"""Gemini CLI: Claude's envelope with event names of its own; nothing but JSON may be printed.

What is answered before a tool never reaches the model; what is answered after one does.
"""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.interfaces.hooks.events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect


_OF_HOOKS = re.compile(r"\A(?:\s*<hook_context>.*?</hook_context>)+\s*", re.DOTALL)


def flatten(payload: dict[str, Any]) -> dict[str, Any]:
    """Without a terminal, what hooks said when the session began stands before the message."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or "<hook_context>" not in prompt:
        return payload
    return {**payload, "prompt": _OF_HOOKS.sub("", prompt)}


def render(event: AgentEvent, reply: Reply) -> str:
    if not reply.text:
        return "{}"
    output = {"hookEventName": event.name, "additionalContext": reply.text}
    return json.dumps({"hookSpecificOutput": output})


DIALECT = Dialect(
    agent="gemini",
    render=render,
    events={
        "beforetool": EventKind.BEFORE_TOOL,
        "aftertool": EventKind.AFTER_TOOL,
        "beforeagent": EventKind.MESSAGE,
        "afteragent": EventKind.TURN_END,
    },
    tools={
        "write_file": ToolKind.WRITE,
        "replace": ToolKind.EDIT,
        "run_shell_command": ToolKind.SHELL,
    },
    carries=frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.AFTER_TOOL}),
    flatten=flatten,
)
