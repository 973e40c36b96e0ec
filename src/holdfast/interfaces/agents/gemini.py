"""Gemini CLI: Claude's envelope with event names of its own; nothing but JSON may be printed.

What is answered before a tool never reaches the model; what is answered after one does.
"""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect

_OF_HOOKS = re.compile(r"\A(?:\s*<hook_context>.*?</hook_context>)+\s*", re.DOTALL)
# Behind the output of a command; there is no such line when it did not fail.
_EXIT = re.compile(
    r"^Exit Code: (\d+)\n(?:(?:Signal|Background PIDs|Process Group PGID): .*\n)*\Z", re.M
)


def flatten(payload: dict[str, Any]) -> dict[str, Any]:
    """Without a terminal, what hooks said when the session began stands before the message. How a
    command ended stands in the text for the model only. Servers of tools are told apart."""
    flat = dict(payload)
    server = payload.get("mcp_context")
    if isinstance(server, dict) and server.get("tool_name"):
        # `mcp_SERVER_TOOL` does not tell where one ends and the other begins
        flat["tool_name"] = f"mcp__{server.get('server_name')}__{server['tool_name']}"
    prompt, answer = payload.get("prompt"), payload.get("tool_response")
    if isinstance(prompt, str) and "<hook_context>" in prompt:
        flat["prompt"] = _OF_HOOKS.sub("", prompt)
    if isinstance(answer, dict) and payload.get("tool_name") == "run_shell_command":
        told = str(answer.get("llmContent", "")).replace("</untrusted_context>", "").rstrip() + "\n"
        if ended := _EXIT.search(told):
            flat["tool_response"] = {**answer, "exit_code": int(ended[1])}
    return flat


def render(event: AgentEvent, reply: Reply) -> str:
    if not reply.text:
        return "{}"
    output = {"hookEventName": event.name, "additionalContext": reply.text}
    shown = {"systemMessage": reply.for_user} if reply.for_user else {}
    return json.dumps({**shown, "hookSpecificOutput": output})


DIALECT = Dialect(
    agent="gemini",
    render=render,
    events={
        "beforetool": EventKind.BEFORE_TOOL,
        "aftertool": EventKind.AFTER_TOOL,
        "beforeagent": EventKind.MESSAGE,
        "precompress": EventKind.COMPACT,
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
