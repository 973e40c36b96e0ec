"""An agent that follows a script: real hook events, real changes, and a copy of every moment.

Each tool call is an event before it, the change itself, and an event after it, sent by the program
that an agent's settings name. What the workspace held before each call is described by something
that knows nothing of the engine, so that a restore can be compared with it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.forked_commands import call_hook
from tests.support.hook_process import HookAnswer
from tests.support.tree_hash import Node, describe


class ScriptedAgent:
    """One session of Claude Code in a project. `moments` holds the state before each tool call.

    `hook` runs one hook; a test about privileges or imports gives one that is started, not forked.
    """

    def __init__(
        self, project: Path, session: str = "s1", *, hook: Callable[..., HookAnswer] = call_hook
    ) -> None:
        self.project = project
        self.session = session
        self._hook = hook
        self.moments: list[dict[bytes, Node]] = []
        self.answers: list[HookAnswer] = []

    def start(self) -> None:
        self._send("SessionStart", source="startup")

    def ask(self, prompt: str) -> None:
        """A person sends a message."""
        self._send("UserPromptSubmit", prompt=prompt)

    def end_turn(self) -> None:
        self._send("Stop", stop_hook_active=False)

    def end(self) -> None:
        self._send("SessionEnd", reason="prompt_input_exit")

    def run(self, command: str) -> None:
        """A Bash call."""
        self._call("Bash", {"command": command}, lambda: self._shell(command))

    def write(self, path: str, content: str) -> None:
        """A Write call."""
        place = self.project / path

        def change() -> None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)

        self._call("Write", {"file_path": str(place), "content": content}, change)

    def _call(self, tool: str, tool_input: dict[str, Any], change: Callable[[], None]) -> None:
        self.moments.append(describe(self.project))
        call = {
            "tool_name": tool,
            "tool_input": tool_input,
            "tool_use_id": f"{self.session}-{len(self.moments)}",
        }
        self._send("PreToolUse", **call)
        change()
        self._send("PostToolUse", **call, tool_response={"stdout": ""})

    def _shell(self, command: str) -> None:
        subprocess.run(["bash", "-c", command], cwd=self.project, check=True, capture_output=True)

    def _send(self, name: str, **fields: Any) -> None:
        event = {
            "session_id": self.session,
            "cwd": str(self.project),
            "hook_event_name": name,
            **fields,
        }
        answer = self._hook("claude-code", event, self.project)
        assert answer.status == 0, answer
        self.answers.append(answer)
