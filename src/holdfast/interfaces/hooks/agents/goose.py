"""Goose: `event` and `working_dir`; before a tool an empty answer is a clean yes, `{}` is none."""

from __future__ import annotations

from holdfast.interfaces.hooks.events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.hooks.normaliser import Dialect


def render(event: AgentEvent, reply: Reply) -> str:
    return ""


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
)
