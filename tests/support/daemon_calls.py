"""Events of one session, sent by a hook's process that may have a daemon behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interfaces.cli.command_line import CommandLine
from tests.support.forked_commands import call_hook


def tool_call(project: Path, use: str, command_line: str = "rm -rf src") -> dict[str, Any]:
    """The event before a command."""
    return {
        "session_id": "s1",
        "cwd": str(project),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command_line},
        "tool_use_id": use,
    }


def after(before: dict[str, Any]) -> dict[str, Any]:
    """The event after the same command."""
    return {**before, "hook_event_name": "PostToolUse", "tool_response": {"stdout": ""}}


def send(project: Path, event: dict[str, Any], agent: str = "claude-code") -> None:
    answer = call_hook(agent, event, project)
    assert (answer.status, answer.err) == (0, "")
    assert agent != "claude-code" or answer.json == {}


def logged_checkpoints(cli: CommandLine) -> list[tuple[str, str]]:
    """Kind and reason of each checkpoint of the session, newest first."""
    return [(m["kind"], m["reasoning"]) for m in cli.json("log", "-n", "100", "--session", "s1")]
