"""Qwen Code: where its hooks lie, what of its events counts, and what its transcripts say."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.agent_setup.protection import protections
from holdfast.interfaces.agents.qwen_code import AGENT
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hook_process import call_hook, recorded
from tests.support.workspace_state import state_of

SETTINGS = ".qwen/settings.json"
TEXT = """Command: make
Output: no rule
Exit Code: 2"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    (project / "src" / "app.py").write_text("price = 1\n")
    (project / "notes.txt").write_text("ideas\n")
    (project / "pyproject.toml").touch()
    return project


@pytest.fixture
def cli(project: Path) -> CommandLine:
    return CommandLine(project)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "own"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for variable in ("QWEN_HOME", "QWEN_RUNTIME_DIR", "QWEN_CODE_TRUSTED_FOLDERS_PATH"):
        monkeypatch.delenv(variable, raising=False)
    return home


@pytest.mark.requirement("HK-1", "HK-2", "AU-1", "AU-3", "RB-10")
def test_what_is_installed_saves_at_every_event_and_goes_without_a_trace(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    """The file is read as the agent reads it: by event, with the matcher as a pattern."""
    before = state_of(project)
    cli.json("install", "qwen", "--mcp")
    settings = json.loads((project / SETTINGS).read_text())
    assert settings["mcpServers"]["holdfast"]["args"][-1] == "mcp"
    for event in recorded("qwen-code", project, "rm -rf src"):
        (group,) = settings["hooks"][event["hook_event_name"]]
        assert re.search(group.get("matcher", ""), event.get("tool_name", ""))
        (handler,) = group["hooks"]
        if event["hook_event_name"] == "PostToolUse":
            subprocess.run(["rm", "-rf", "src"], cwd=project, check=True)
        done = subprocess.run(
            ["sh", "-c", handler["command"]],
            input=json.dumps(event).encode(),
            capture_output=True,
            cwd=project,
            timeout=handler["timeout"] / 1000 + 60,
            check=False,
        )
        assert (done.returncode, json.loads(done.stdout)) == (0, {})
    kinds = {one["kind"] for one in cli.json("log", "--session", "7d1b64e2-qwen")}
    assert {"risky", "message", "initial"} <= kinds
    cli.json("undo", "--yes")
    assert (project / "src" / "app.py").read_text() == "price = 1\n"
    cli.json("uninstall", "qwen-code")
    left = {path for path in state_of(project) if not str(path).startswith(".holdfast")}
    assert left == {path for path in before if not str(path).startswith(".holdfast")}


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize(
    ("tool", "called"),
    [
        *((name, True) for name in ("edit", "write_file", "notebook_edit", "run_shell_command")),
        *((name, True) for name in ("exec", "monitor", "tool_call", "mcp__files__write_file")),
        *((name, False) for name in ("read_file", "grep_search", "todo_write", "task_create")),
    ],
)
def test_the_hooks_are_called_for_tools_that_can_change_files(tool: str, called: bool) -> None:
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
        (group,) = AGENT.hook_entries("holdfast")[event]
        assert bool(re.search(group["matcher"], tool)) is called


@pytest.mark.requirement("AU-2", "SE-2")
def test_answers_of_tools_that_go_to_the_model_are_not_taken_for_a_message(
    project: Path, cli: CommandLine
) -> None:
    message = recorded("qwen-code", project, "true")[1]
    typed = {**message, "prompt": "Clean it up\n\n(a file that was pasted)"}
    call_hook("qwen-code", typed, project)
    answers = {**message, "prompt": ""}
    del answers["submitted_prompt"]
    call_hook("qwen-code", answers, project)
    kinds = [one["kind"] for one in cli.json("log", "--session", "7d1b64e2-qwen")]
    assert kinds.count("message") == 1
    assert cli.json("sessions")[0]["title"] == "Clean the project up"


@pytest.mark.requirement("RB-10")
def test_it_is_notified_after_a_tool_since_its_model_sees_no_answer_before_one(
    project: Path, cli: CommandLine
) -> None:
    *_, before, after, _, _ = recorded("qwen-code", project, "rm -rf src")
    call_hook("qwen-code", before, project)
    (project / "notes.txt").write_text("worse\n")
    call_hook("qwen-code", {**before, "tool_use_id": "2"}, project)
    cli.json("restore", "HEAD~1", "--yes")
    assert call_hook("qwen-code", {**before, "tool_use_id": "3"}, project).json == {}
    told = call_hook("qwen-code", {**after, "tool_use_id": "3"}, project).json
    assert "restored" in told["hookSpecificOutput"]["additionalContext"]


@pytest.mark.requirement("HK-6")
def test_hooks_that_are_turned_off_or_not_trusted_are_noticed(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    cli.json("install", "qwen-code")
    assert _only(project).protected
    own = own_home / ".qwen"
    own.mkdir()
    (own / "settings.json").write_text('{"security": {"folderTrust": {"enabled": true}}}')
    assert "trust" in _only(project).finding
    (own / "trustedFolders.json").write_text(json.dumps({str(project.parent): "TRUST_FOLDER"}))
    assert _only(project).protected
    (own / "settings.json").write_text('{"disableAllHooks": true}')
    assert "disableAllHooks" in _only(project).finding


def _only(project: Path) -> Any:
    (found,) = protections(project)
    return found


@pytest.mark.requirement("AG-1")
def test_its_memory_is_that_of_this_workspace(tmp_path: Path) -> None:
    named = AGENT.memory(Path("/home/ada/my shop"), {"QWEN_HOME": "/srv/qwen"})
    assert named[-1] == "/srv/qwen/projects/-home-ada-my-shop/memory"
    assert AGENT.memory(Path("/x"), {})[-1] == "~/.qwen/projects/-x/memory"


def line(kind: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    stamp = {"uuid": "u1", "timestamp": "2026-11-16T11:57:50.918Z", "type": kind}
    return {**stamp, "message": {"role": "user", "parts": list(parts)}, **more}


@pytest.mark.requirement("SE-2")
def test_a_turn_becomes_what_was_asked_what_was_done_and_what_came_of_it() -> None:
    context = {"text": "<qwen:user-prompt-submit-context>\nhook\n</qwen:…>"}
    asked = AGENT.transcript_message(line("user", {"text": "Tidy up"}, context))
    call = {"functionCall": {"id": "c1", "name": "edit", "args": {"file_path": "a"}}}
    thought = {"text": "hm", "thought": True}
    done = AGENT.transcript_message(line("assistant", thought, {"text": "I will"}, call))
    answer = {"functionResponse": {"id": "c1", "name": "edit", "response": {"output": "ok"}}}
    failed = {"functionResponse": {"id": "c2", "name": "edit", "response": {"error": TEXT}}}
    came = AGENT.transcript_message(line("tool_result", answer, failed))
    assert asked is not None
    assert done is not None
    assert came is not None
    assert (asked.role, asked.content, asked.source_key) == ("user", "Tidy up", "qwen:u1")
    assert asked.at_ns == 1794830270_918_000_000
    assert (done.role, done.content, done.tool_use_ids) == ("assistant", "I will", ("c1",))
    assert done.tool_calls == ({"id": "c1", "name": "edit", "input": {"file_path": "a"}},)
    assert (came.role, came.content) == ("tool", f"ok\n{TEXT}")
    assert came.tool_use_ids == ("c1", "c2")


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    "other",
    [
        {"type": "system", "subtype": "ui_telemetry"},
        line("assistant", {"text": "thinking", "thought": True}),
        line("user"),
        {"type": "user", "message": "text"},
        {"type": ["user"], "message": {"parts": {}}},
    ],
)
def test_lines_without_a_message_are_passed_over(other: dict[str, Any]) -> None:
    assert AGENT.transcript_message(other) is None


@pytest.mark.requirement("SE-2")
def test_what_the_program_says_in_the_users_name_is_not_the_users() -> None:
    told = AGENT.transcript_message(line("user", {"text": "go on"}, provenance="goal_runtime"))
    assert told is not None
    assert told.role == "system"
