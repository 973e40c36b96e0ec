"""Calling a hook as an agent does: a process, the event on its input, its answer, its end."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interfaces.cli.command_line import command

SESSIONS = Path(__file__).resolve().parents[1] / "fixtures" / "agent_sessions"
# What the agent that runs these tests may have set.
_HOSTS = ("CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "GEMINI_PROJECT_DIR")


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What an agent sees of a hook."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def call_hook(
    agent: str,
    event: Mapping[str, Any] | bytes,
    workspace: Path,
    *,
    environment: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
) -> HookAnswer:
    """Run the hook and wait for everything it left running: its children hold the pipe."""
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            command("hook", agent, *arguments),
            input=event_bytes(event),
            capture_output=True,
            cwd=workspace,
            env={**inherited_variables(), **(environment or {})},
            pass_fds=(writing,),
            check=False,
        )
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as waiting:
        assert waiting.read() == b""
    return HookAnswer(done.returncode, done.stdout.decode(), done.stderr.decode())


def event_bytes(event: Mapping[str, Any] | bytes) -> bytes:
    return event if isinstance(event, bytes) else json.dumps(event).encode()


def inherited_variables() -> dict[str, str]:
    """The environment of an agent that a user starts here."""
    return {name: value for name, value in os.environ.items() if name not in _HOSTS}


def recorded(agent: str, workspace: Path, shell_command: str, number: int = 1) -> list[Any]:
    """The events of a recorded session, as if it had been this workspace and this command."""
    events: list[Any] = json.loads((SESSIONS / f"{agent}.json").read_text("utf-8"))
    replacements = {"@WORKSPACE@": str(workspace), "@N@": str(number), "@COMMAND@": shell_command}
    filled: list[Any] = _fill(events, replacements)
    return filled


def _fill(value: Any, replacements: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_fill(item, replacements) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, replacements) for key, item in value.items()}
    if isinstance(value, str):
        if value.startswith("{"):  # arguments that are JSON in a text
            return json.dumps(_fill(json.loads(value), replacements))
        for mark, text in replacements.items():
            value = value.replace(mark, text)
    return value
