"""Claude Code: the wire format that most others follow.

An answer is one JSON object; a text for the model stands in `hookSpecificOutput`, one for the user
in `systemMessage`.
"""

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
    agent="claude-code",
    render=render,
    tools={
        "Edit": ToolKind.EDIT,
        "MultiEdit": ToolKind.EDIT,
        "Write": ToolKind.WRITE,
        "NotebookEdit": ToolKind.NOTEBOOK,
        "Bash": ToolKind.SHELL,
        "PowerShell": ToolKind.SHELL,
        "BashOutput": ToolKind.OTHER,
        "KillShell": ToolKind.OTHER,
        "TodoWrite": ToolKind.OTHER,
    },
    carries=frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL}),
)
