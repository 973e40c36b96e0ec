"""The end of a tool call, of a turn and of a session: what came before it is over, and saved."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine, command
from tests.support.daemons import daemon_here
from tests.support.hook_process import recorded
from tests.support.hooks_here import call_hook


def _send(project: Path, event: dict[str, Any]) -> None:
    assert call_hook("claude-code", event, project).json == {}


def _tool(project: Path, name: str, use: str, **tool_input: str) -> dict[str, Any]:
    return {
        "session_id": "s1",
        "cwd": str(project),
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": tool_input,
        "tool_use_id": use,
    }


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize("wanted", ["on", "off"])
def test_what_an_interrupted_turn_left_is_saved_when_the_session_ends(
    wanted: str, project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "auto_turn_end", wanted)
    event = _tool(project, "Edit", "t1", file_path="notes.txt")
    _send(project, event)
    (project / "notes.txt").write_text("the edit that the agent was stopped after\n")
    end = {"session_id": "s1", "cwd": str(project), "hook_event_name": "SessionEnd"}
    for _ in range(2):
        _send(project, {**end, "reason": "prompt_input_exit"})
    newest = cli.json("log", "--session", "s1")[0]["reasoning"]
    assert (newest == "When the session ended") == (wanted == "on")
    assert (cli.json("diff", "HEAD", "--session", "s1")["changes"] == []) == (wanted == "on")
    assert len(cli.json("log", "--session", "s1")) == (3 if wanted == "on" else 2)


@pytest.mark.requirement("AU-2", "RL-6")
def test_a_clock_that_was_set_back_does_not_hide_what_a_command_did(
    project: Path, cli: CommandLine
) -> None:
    event = _tool(project, "Bash", "t1", command="make")
    _send(project, event)
    noted = Path(cli.json("status")["store"]) / "hook-events"
    notes = json.loads(noted.read_text())
    notes["before"] = {key: at + 3600 * 10**9 for key, at in notes["before"].items()}
    noted.write_text(json.dumps(notes))
    (project / "made").write_text("by the command\n")
    _send(project, {**event, "hook_event_name": "PostToolUse", "tool_response": {}})
    assert cli.json("log", "--session", "s1")[0]["reasoning"] == "After Bash: make"


@pytest.mark.requirement("AU-1", "HK-2")
@pytest.mark.parametrize("between", ["the end of the call", "another call with the same id"])
def test_the_same_id_with_the_same_command_is_another_call_when_the_first_is_over(
    between: str, project: Path, cli: CommandLine
) -> None:
    """Some models restart the count of their calls in every turn: what was edited since is not
    lost."""
    event = _tool(project, "Bash", "call_0", command="./generate.sh")
    _send(project, event)
    if between == "the end of the call":
        _send(project, {**event, "hook_event_name": "PostToolUse", "tool_response": {}})
    else:
        _send(project, _tool(project, "Edit", "call_0", file_path="notes.txt"))
    (project / "notes.txt").write_text("what the agent wrote\n")
    _send(project, event)
    assert cli.json("diff", "HEAD")["changes"] == []


_AGENT = """
import json, subprocess, sys
for use in ("t1", "t2"):
    event = json.dumps({**json.loads(sys.argv[1]), "tool_use_id": use})
    subprocess.run(sys.argv[2:], input=event.encode(), check=True, stdout=subprocess.DEVNULL)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.requirement("SE-1")
@pytest.mark.usefixtures("patience", "runtime")
def test_a_session_ends_with_an_agent_that_was_killed(project: Path, cli: CommandLine) -> None:
    event = json.dumps(_tool(project, "Edit", "t1", file_path="notes.txt"))
    cli.save()
    with daemon_here() as daemon:
        agent = subprocess.Popen(
            [sys.executable, "-c", _AGENT, event, *command("hook", "claude-code")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=project,
        )
        with agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"ready\n"
            daemon.end_gone_sessions()
            assert _status(cli) == "active"
            agent.kill()
        daemon.end_gone_sessions()
        assert _status(cli) == "ended"


@pytest.mark.requirement("AG-1")
@pytest.mark.parametrize("first", ["the start of the session", "a tool call", "a later tool call"])
def test_an_agent_that_had_no_message_yet_is_asked_to_end(
    first: str, project: Path, cli: CommandLine
) -> None:
    event = _tool(project, "Edit", "t1", file_path="notes.txt")
    if first == "the start of the session":
        event |= {"hook_event_name": "SessionStart", "source": "startup"}
    elif first == "a later tool call":  # after one of another process, which is gone
        sent = "import subprocess, sys; subprocess.run(sys.argv[2:], input=sys.argv[1].encode())"
        hook = command("hook", "claude-code")
        subprocess.run(
            [sys.executable, "-c", sent, json.dumps(event), *hook], cwd=project, check=True
        )
    agent = subprocess.Popen(
        [sys.executable, "-c", _AGENT, json.dumps(event), *command("hook", "claude-code")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=project,
    )
    with agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"ready\n"
        made = cli.json("log")[-1]["id"]
        (project / "notes.txt").write_text("changed\n")
        done = cli.json("restore", made, "--yes", "--stop-agents")
        ended = {"session_id": "s1", "agent": "claude-code", "process": agent.pid}
        assert done["agents"] == [ended | {"status": "ended"}]
        assert agent.wait() == -signal.SIGTERM


def _status(cli: CommandLine) -> str:
    return str(cli.json("status", "--session", "s1")["session_status"])


@pytest.mark.requirement("HK-6", "RB-10")
def test_a_conversation_of_cline_that_is_resumed_is_the_same_session_and_is_notified_of_a_restore(
    project: Path, cli: CommandLine
) -> None:
    def events(task: str) -> list[Any]:
        found = recorded("cline", project, "rm -rf src")
        return [{**e, "taskId": task, "sessionContext": {"rootSessionId": "root"}} for e in found]

    for event in events("1")[:4]:
        call_hook("cline", event, project)
    (project / "src" / "app.py").unlink()
    made = cli.json("log", "--session", "root")
    cli.json("restore", made[0]["id"], "--session", "root", "--yes")
    answers = [call_hook("cline", event, project).out for event in events("2")[:4]]
    assert sum("restored to an earlier state" in answer for answer in answers) == 1
    assert "2" not in cli.json("status")["sessions"]


@pytest.mark.requirement("AU-4")
@pytest.mark.parametrize(
    ("agent", "named", "arguments"),
    [
        ("claude-code", {"hook_event_name": "PreCompact", "trigger": "auto"}, ()),
        ("codex", {"hook_event_name": "PreCompact", "trigger": "auto"}, ()),
        ("gemini", {"hook_event_name": "PreCompress", "trigger": "auto"}, ()),
        ("cursor", {"hook_event_name": "preCompact", "trigger": "auto"}, ()),
        ("copilot", {"trigger": "auto"}, ("preCompact",)),
        ("cline", {"hookName": "pre_compact"}, ()),
        ("opencode", {"event": "experimental.session.compacting"}, ()),
    ],
)
def test_before_an_agent_compacts_its_context_what_changed_is_saved(
    agent: str, named: dict[str, Any], arguments: tuple[str, ...], project: Path, cli: CommandLine
) -> None:
    start, message, *_ = recorded(agent, project, "true")
    for event in (start, message):
        call_hook(agent, event, project)
    (project / "notes.txt").write_text("known to a context that is about to be summarised\n")
    keys = "session_id sessionId taskId conversation_id sessionID cwd workspaceRoots directory"
    known = {key: value for key, value in start.items() if key in keys.split()}
    for _ in range(2):
        assert call_hook(agent, known | named, project, arguments=arguments).status == 0
    told = [one["reasoning"] for one in cli.json("log")]
    assert told.count("Before the agent compacts its context") == 1
    assert cli.json("diff", "HEAD")["changes"] == []
