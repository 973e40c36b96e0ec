"""`undo --turn` goes from message to message, and says whose work it undoes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.automation.test_first_captured import Agent
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("RB-11")


class Writer:
    """A session of an agent that writes a message to its transcript before it reports it."""

    def __init__(self, project: Path, session: str) -> None:
        self._project = project
        self._session = session
        self._transcript = project.parent / f"{session}.jsonl"
        self._transcript.touch()

    def turn(self, prompt: str, path: str, text: str) -> None:
        line: dict[str, Any] = {"type": "user", "uuid": prompt, "sessionId": self._session}
        line |= {"message": {"role": "user", "content": prompt}}
        line |= {"timestamp": "2026-11-16T08:16:11.177Z"}
        with self._transcript.open("a") as file:
            file.write(f"{json.dumps(line)}\n")
        self._send("UserPromptSubmit", prompt=prompt)
        place = self._project / path
        call: dict[str, Any] = {"tool_name": "Write", "tool_use_id": prompt}
        call |= {"tool_input": {"file_path": str(place), "content": text}}
        self._send("PreToolUse", **call)
        place.write_text(text)
        self._send("PostToolUse", **call, tool_response={})
        self._send("Stop")

    def _send(self, name: str, **given: Any) -> None:
        known = {"session_id": self._session, "cwd": str(self._project), "hook_event_name": name}
        known["transcript_path"] = str(self._transcript)
        assert call_hook("claude-code", {**known, **given}, self._project).status == 0


def _texts(project: Path) -> tuple[str, str]:
    return (project / "src/app.py").read_text(), (project / "notes.txt").read_text()


def test_turns_are_undone_message_by_message(project: Path, cli: CommandLine) -> None:
    first = _texts(project)
    agent = Writer(project, "s1")
    agent.turn("one", "src/app.py", "price = 1\n")
    (project / "notes.txt").write_text("by hand\n")
    agent.turn("two", "src/app.py", "price = 0\n")
    assert "your edits" not in cli("undo", "--turn", "--yes").out
    assert _texts(project) == ("price = 1\n", "by hand\n")
    done = cli("undo", "--turn", "--yes")
    assert "with your edits of notes.txt" in done.out
    assert _texts(project) == first
    cli.json("redo", "--yes")
    assert _texts(project) == ("price = 1\n", "by hand\n")


@pytest.mark.parametrize("saved", [False, True])
def test_edits_by_hand_after_the_turn_are_named(
    project: Path, cli: CommandLine, saved: bool
) -> None:
    agent = Agent(project)
    agent.message("go")
    agent.write("src/app.py", "price = 0\n")
    agent.end()
    (project / "notes.txt").write_text("by hand\n")
    if saved:
        cli.save("mine")
    assert "with your edits of notes.txt" in cli("undo", "--turn", "--dry-run").out
    assert "with your edits of notes.txt" in cli("undo", "--turn", "--yes").out


def test_an_ignored_file_that_a_call_deletes_is_not_an_edit_of_the_user(
    project: Path, cli: CommandLine
) -> None:
    (project / ".gitignore").write_text(".env\n")
    (project / ".env").write_text("KEY=1\n")
    cli.save("before")
    agent = Agent(project)
    agent.message("go")
    agent.run("rm .env")
    agent.write("src/app.py", "price = 0\n")
    agent.end()
    planned = cli("undo", "--turn", "--dry-run")
    assert ".env" in planned.out, planned
    assert "your edits" not in planned.out


def test_the_agents_of_a_turn_are_named_where_there_are_two(
    project: Path, cli: CommandLine
) -> None:
    for session in ("one", "two"):
        call_hook(
            "claude-code",
            {
                "session_id": session,
                "cwd": str(project),
                "hook_event_name": "UserPromptSubmit",
                "prompt": f"go {session}",
            },
            project,
        )
    for session, path in (("one", "src/app.py"), ("two", "notes.txt")):
        call: dict[str, Any] = {"session_id": session, "cwd": str(project), "tool_use_id": session}
        call |= {"tool_name": "Bash", "tool_input": {"command": f"make {session}"}}
        call_hook("claude-code", {**call, "hook_event_name": "PreToolUse"}, project)
        (project / path).write_text(f"{session}\n")
        call_hook(
            "claude-code",
            {**call, "hook_event_name": "PostToolUse", "tool_response": {}},
            project,
        )
    undone = cli.json("undo", "--turn", "--yes")["undone"]
    assert undone["sessions"] == ["one", "two"]
    assert undone["what"].endswith(", by claude-code (session one) and claude-code (session two)")
