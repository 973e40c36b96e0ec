"""Goose: `event` and `working_dir`; before a tool an empty answer is a clean yes, `{}` is none.

It reads an answer before a tool and at the end of a turn, and hands a text on with a refusal only.
A tool is never refused, so that the end of a turn is where the model hears of something: it gets
one more turn, with the text.
"""

from __future__ import annotations

import json

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect

_PASS_ON = "Tell the user what this says. Then end your turn, unless it changes what is left to do."


def render(event: AgentEvent, reply: Reply) -> str:
    if event.kind is not EventKind.TURN_END or not reply.text:
        return ""
    return json.dumps({"decision": "block", "reason": f"{reply.text}\n\n{_PASS_ON}"})


DIALECT = Dialect(
    agent="goose",
    render=render,
    events={
        "beforeshellexecution": EventKind.OTHER,
        "aftershellexecution": EventKind.OTHER,
    },
    tools={
        "developer__shell": ToolKind.SHELL,
        "developer__write": ToolKind.WRITE,
        "developer__edit": ToolKind.EDIT,
        "developer__text_editor": ToolKind.EDIT,
        "developer__analyze": ToolKind.OTHER,
        "developer__read_image": ToolKind.OTHER,
        "todo__todo_write": ToolKind.OTHER,
    },
    carries=frozenset({EventKind.TURN_END}),
)
