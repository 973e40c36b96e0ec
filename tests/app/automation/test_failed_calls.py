"""A failed tool call is rolled back if that is wanted, however the agent reports it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.hook_process import recorded
from tests.support.hooks_here import call_hook
from tests.support.workspace_state import state_of


def _send(project: Path, event: dict[str, Any], agent: str = "claude-code") -> Any:
    answer = call_hook(agent, event, project)
    assert (answer.status, answer.err) == (0, "")
    return json.loads(answer.out or "{}")


@pytest.mark.requirement("AU-5")
def test_a_call_that_a_person_stopped_is_not_rolled_back(project: Path, cli: CommandLine) -> None:
    cli.json("config", "set", "restore_on_failure", "on")
    before = recorded("claude-code", project, "rm -rf src")[3]
    _send(project, before)
    subprocess.run(["rm", "-rf", "src"], cwd=project, check=True)
    _send(project, {**before, "hook_event_name": "PostToolUseFailure", "is_interrupt": True})
    assert not (project / "src").exists()


@pytest.mark.requirement("AU-5")
@pytest.mark.parametrize("wanted", ["on", "off"])
def test_a_failed_tool_call_is_rolled_back_if_that_is_wanted(
    wanted: str, project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "restore_on_failure", wanted)
    command = "rm -rf src; false"
    before = recorded("claude-code", project, command)[3]
    sound = state_of(project)
    _send(project, before)
    subprocess.run(["bash", "-c", command], cwd=project, check=False)
    failed = {
        **before,
        "hook_event_name": "PostToolUseFailure",
        "error": "exit status 1",
        "is_interrupt": False,
    }
    answer = _send(project, failed)
    assert (state_of(project) == sound) == (wanted == "on")
    if wanted == "on":
        told = answer["hookSpecificOutput"]
        assert told["hookEventName"] == "PostToolUseFailure"
        assert "rolled the workspace back" in told["additionalContext"]
        cli.json("undo", "--yes")
        assert not (project / "src").exists()


@pytest.mark.requirement("AU-5")
def test_an_agent_is_notified_when_the_checkpoint_before_its_failed_call_is_gone(
    project: Path, cli: CommandLine
) -> None:
    """As after a person deleted it while calls ran side by side."""
    cli.json("config", "set", "restore_on_failure", "on")
    command = "rm -rf src; false"
    before = recorded("claude-code", project, command)[3]
    _send(project, {**before, "tool_use_id": "one"})
    (project / "beside").write_text("by another call")
    _send(project, {**before, "tool_use_id": "two"})
    _, first, *_ = cli.json("log")
    cli.json("delete", first["id"], "--yes")
    subprocess.run(["bash", "-c", command], cwd=project, check=False)
    answer = _send(
        project,
        {
            **before,
            "tool_use_id": "one",
            "hook_event_name": "PostToolUseFailure",
            "error": "exit status 1",
            "is_interrupt": False,
        },
    )
    told = answer["hookSpecificOutput"]["additionalContext"]
    assert "could not roll the workspace back" in told
    assert not (project / "src").exists()


@pytest.mark.requirement("AU-5")
@pytest.mark.parametrize("agent", ["codex", "gemini", "cursor", "copilot", "cline", "goose"])
def test_each_agent_says_in_its_own_way_that_a_tool_failed(
    agent: str, project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "restore_on_failure", "on")
    events = recorded(agent, project, "rm -rf src; false")
    after = {
        "codex": {**events[4], "tool_response": {"output": "", "exit_code": 1}},
        "gemini": {**events[4], "tool_response": {"error": {"message": "exit 1"}}},
        "cursor": {**events[4], "hook_event_name": "postToolUseFailure", "error_message": "exit 1"},
        "copilot": {
            "error": "exit 1",
            **{key: value for key, value in events[4].items() if key != "toolResult"},
        },
        "cline": {
            **events[4],
            "postToolUse": {**events[4].get("postToolUse", {}), "success": False, "result": "no"},
        },
        "goose": {**events[4], "event": "PostToolUseFailure"},
    }[agent]
    sound = state_of(project)
    call_hook(agent, events[3], project)
    subprocess.run(["rm", "-rf", "src"], cwd=project, check=True)
    assert call_hook(agent, after, project).status == 0
    assert state_of(project) == sound


_SUCCESSFUL = "Output: Exit Code: 3\nnot the end\nProcess Group PGID: 5"


@pytest.mark.requirement("AU-5")
@pytest.mark.parametrize(
    ("agent", "result", "failed"),
    [
        ("gemini", "Output: no\nExit Code: 3\nSignal: 9\nProcess Group PGID: 5", True),
        ("gemini", "<untrusted_context>\nOutput: no\nExit Code: 3\n</untrusted_context>", True),
        ("gemini", _SUCCESSFUL, False),
        ("copilot", "no\n<shellId: 0 completed with exit code 3>", True),
        ("copilot", "exit code 3\n<shellId: 0 completed with exit code 0>", False),
        ("claude-code", "no\n<shellId: 0 completed with exit code 3>", True),  # run by Copilot
        ("cline", {"success": False, "error": "Command exited with code 3"}, True),
        ("cline", {"success": True, "result": "Command exited with code 3"}, False),
    ],
)
def test_a_command_whose_end_only_the_text_for_the_model_tells_has_failed(
    agent: str, result: Any, failed: bool, project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "restore_on_failure", "on")
    events = recorded("copilot" if agent == "claude-code" else agent, project, "rm -rf src; exit 3")
    after = {
        "gemini": {**events[4], "tool_response": {"llmContent": result, "returnDisplay": "no"}},
        "copilot": {
            **events[4],
            "toolResult": {"resultType": "success", "textResultForLlm": result},
        },
        "claude-code": {
            "hook_event_name": "PostToolUse",
            "session_id": events[4].get("sessionId"),
            "timestamp": "2026-11-15T10:00:00.000Z",
            "cwd": str(project),
            "tool_name": "Bash",
            "tool_input": {"command": "rm -rf src; exit 3"},
            "tool_result": {"result_type": "success", "text_result_for_llm": result},
        },
        "cline": {
            **events[4],
            "postToolUse": {"toolName": "run_commands", "success": True},
            "tool_result": {"name": "run_commands", "output": [{"success": True}, result]},
        },
    }[agent]
    sound = state_of(project)
    _send(project, events[3], "copilot" if agent == "claude-code" else agent)
    subprocess.run(["rm", "-rf", "src"], cwd=project, check=True)
    _send(project, after, agent)
    assert (state_of(project) == sound) == failed


@pytest.mark.requirement("AU-5")
@pytest.mark.parametrize("saved", ["on", "off"])
def test_a_failed_call_takes_nothing_of_the_call_before_it_back(
    saved: str, project: Path, cli: CommandLine
) -> None:
    """Of an agent that gives no ids to its calls; what came after the command is saved already."""
    cli.json("config", "set", "restore_on_failure", "on")
    cli.json("config", "set", "auto_edit", saved)
    command: dict[str, Any] = {
        "session_id": "g",
        "cwd": str(project),
        "tool_name": "run_shell_command",
    }
    command["tool_input"] = {"command": "make"}
    edit = {**command, "tool_name": "replace", "tool_input": {"file_path": "notes.txt"}}
    _send(project, {**command, "hook_event_name": "BeforeTool"}, "gemini")
    (project / "made").write_text("by the command\n")
    ended = {**command, "hook_event_name": "AfterTool", "tool_response": {"llmContent": "done"}}
    _send(project, ended, "gemini")
    before = state_of(project)
    _send(project, {**edit, "hook_event_name": "BeforeTool"}, "gemini")
    (project / "notes.txt").write_text("half of an edit\n")
    failed = {**edit, "hook_event_name": "AfterTool", "tool_response": {"error": "no match"}}
    _send(project, failed, "gemini")
    assert (project / "made").read_text() == "by the command\n"
    assert (state_of(project) == before) == (saved == "on")
