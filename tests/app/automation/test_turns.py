"""`undo --turn` goes back to before the last message to an agent, whichever agent it was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.agents import AGENTS
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hook_process import recorded
from tests.support.hooks_here import call_hook
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.requirement("RB-11")


def _turn(agent: str, project: Path, command: str, number: int) -> None:
    """One message and what comes of it, as the agent really tells it."""
    start, message, edit, before, after, stop, _ = recorded(agent, project, command, number)
    message = json.loads(json.dumps(message).replace("project up", f"project up, part {number}"))
    began = {**start, "timestamp": f"2026-11-16T08:16:1{number}.177Z", "parent_agent_id": None}
    # Cline says that an agent starts, with each message, and nothing else of the message.
    first = [began] if agent == "cline" else [start, message] if number == 1 else [message]
    for event in (*first, edit):
        assert call_hook(agent, event, project).status == 0
    (project / "src" / "app.py").write_text(f"price = {number * 100}\n")
    call_hook(agent, before, project)
    subprocess.run(["bash", "-c", command], cwd=project, check=True, capture_output=True)
    call_hook(agent, after, project)
    call_hook(agent, stop, project)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_work_of_the_last_message_is_undone(
    agent: str, project: Path, cli: CommandLine
) -> None:
    first = state_of(project)
    _turn(agent, project, "echo more >> notes.txt", 1)
    second = state_of(project)
    _turn(agent, project, "rm -rf src", 2)
    cli.json("undo", "--turn", "--yes")
    assert state_of(project) == second
    cli.json("undo", "--turn", "--yes")
    assert state_of(project) == first


def test_an_agent_that_an_agent_of_cline_starts_begins_no_turn(
    project: Path, cli: CommandLine
) -> None:
    first = state_of(project)
    start, _, edit, before, after, *_ = recorded("cline", project, "rm -rf src")
    root: dict[str, Any] = {"sessionContext": {"rootSessionId": "root"}}
    helper = {"taskId": "t2", "agent_id": "a2", "parent_agent_id": "a1"}
    call_hook("cline", {**start, **root, "parent_agent_id": None}, project)
    call_hook("cline", {**edit, **root}, project)
    (project / "src" / "app.py").write_text("price = 100\n")
    call_hook("cline", {**start, **root, **helper}, project)
    call_hook("cline", {**before, **root, **helper}, project)
    subprocess.run(["rm", "-rf", "src"], cwd=project, check=True)
    call_hook("cline", {**after, **root, **helper}, project)
    cli.json("undo", "--turn", "--yes")
    assert state_of(project) == first


def test_without_a_message_it_says_so_and_what_else_there_is(
    project: Path, cli: CommandLine
) -> None:
    cli.save()
    (project / "notes.txt").write_text("wrecked\n")
    answer = cli("undo", "--turn", "--yes")
    assert answer.status != 0
    assert "No message to an agent is recorded here" in answer.err
    assert "holdfast undo" in answer.err
    assert (project / "notes.txt").read_text() == "wrecked\n"


def test_a_turn_of_many_tool_calls_is_undone_as_one(project: Path, cli: CommandLine) -> None:
    first = state_of(project)
    start, message, edit, *_ = recorded("claude-code", project, "true")
    for event in (start, message):
        call_hook("claude-code", event, project)
    for number in range(40):
        call_hook("claude-code", {**edit, "tool_use_id": f"call-{number}"}, project)
        (project / "src" / "app.py").write_text(f"price = {number * 100}\n")
    cli.json("undo", "--turn", "--yes")
    assert state_of(project) == first
