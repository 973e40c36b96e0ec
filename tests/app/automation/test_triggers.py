"""What each event leads to: once, if it is wanted, in the right session; failures rolled back."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.agent_events import ToolKind
from holdfast.interfaces.agents import agent_named
from holdfast.interfaces.hooks.translation import normalise
from holdfast.tools import ToolHandlers
from tests.interfaces.cli.command_line import CommandLine
from tests.support import forked_commands
from tests.support.hook_process import recorded
from tests.support.hooks_here import call_hook


@pytest.fixture
def settled(project: Path) -> None:
    """The repository was last changed so long ago that a save can rely on its files' times."""
    time.sleep(0.1)


def _send(project: Path, event: dict[str, Any], agent: str = "claude-code") -> Any:
    answer = call_hook(agent, event, project)
    assert (answer.status, answer.err) == (0, "")
    return json.loads(answer.out or "{}")


def _kinds(cli: CommandLine, *session: str) -> list[str]:
    return [made["kind"] for made in cli.json("log", "-n", "100", *session)]


def _tool(project: Path, name: str, use: str, **tool_input: str) -> dict[str, Any]:
    return {
        "session_id": "s1",
        "cwd": str(project),
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": tool_input,
        "tool_use_id": use,
    }


@pytest.mark.requirement("AU-1", "SE-7")
@pytest.mark.parametrize(
    ("name", "tool_input", "described"),
    [
        ("Edit", {"file_path": "src/app.py"}, "Before Edit: src/app.py"),
        ("Write", {"file_path": "new.txt", "content": "x"}, "Before Write: new.txt"),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, "Before NotebookEdit: a.ipynb"),
        ("Bash", {"command": "make test"}, "Before Bash: make test"),
        (
            "mcp__filesystem__write_file",
            {"path": "src/app.py", "content": "x"},
            "Before mcp__filesystem__write_file: src/app.py",
        ),
        (
            "mcp__filesystem__move_file",
            {"source": "src/app.py", "destination": "app.py"},
            "Before mcp__filesystem__move_file: src/app.py, app.py",
        ),
        ("mcp__github__create_issue", {"title": "x"}, "Before mcp__github__create_issue"),
        ("mcp__db__query", {"sql": "drop table a"}, "Before mcp__db__query"),
        ("mcp__files__get_and_delete", {}, "Before mcp__files__get_and_delete"),
        ("mcp__files__search_and_replace", {}, "Before mcp__files__search_and_replace"),
    ],
)
def test_a_checkpoint_is_made_before_each_tool_that_changes_files(
    name: str, tool_input: dict[str, str], described: str, project: Path, cli: CommandLine
) -> None:
    _send(project, _tool(project, name, "t1", **tool_input))
    made = cli.json("log", "--session", "s1")[0]
    assert (made["kind"], made["reasoning"]) == ("tool", described)


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize(
    "name",
    [
        "Read",
        "Grep",
        "WebFetch",
        "TodoWrite",
        "mcp__filesystem__read_text_file",
        "mcp__filesystem__list_directory",
        "mcp__holdfast__checkpoint_create",
        "mcp__plugin_holdfast_holdfast__checkpoint_restore",
    ],
)
def test_tools_that_change_nothing_cost_nothing(
    name: str, project: Path, holdfast_home: Path
) -> None:
    _send(project, _tool(project, name, "t1", file_path="src/app.py"))
    assert list(holdfast_home.iterdir()) == []


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize(
    ("agent", "write", "read"),
    [
        ("codex", "mcp__files__write_file", "mcp__files__read_file"),
        ("gemini", "mcp_files_write_file", "mcp_files_read_file"),
        ("cursor", "MCP:write_file", "MCP:read_file"),
        ("copilot", "files-write_file", "files-read_file"),
        ("opencode", "files_write_file", "read"),
        ("cline", "use_mcp_tool", "read_files"),
        ("goose", "files__write_file", "files__read_file"),
    ],
)
def test_tools_of_mcp_servers_are_known_to_every_agent(
    agent: str, write: str, read: str, project: Path
) -> None:
    before = recorded(agent, project, "true")[3]
    dialect = agent_named(agent)

    def kind_of(name: str) -> ToolKind:
        named = _named(before, name)
        if agent == "gemini":
            parts = {"server_name": "files", "tool_name": name.removeprefix("mcp_files_")}
            named = {**named, "mcp_context": parts}
        return normalise(named, dialect, {}).tool_kind

    assert kind_of(write).changes_files
    assert not kind_of(read).changes_files


def _named(event: Any, tool: str) -> Any:
    """The event of another tool, wherever the agent says which it is."""
    if not isinstance(event, dict):
        return event
    names = ("tool_name", "toolName", "tool", "name")
    return {
        k: tool if k in names and isinstance(v, str) else _named(v, tool) for k, v in event.items()
    }


@pytest.mark.requirement("AU-1", "CP-13")
def test_the_intent_names_the_paths_those_outside_apart(project: Path, cli: CommandLine) -> None:
    _send(project, _tool(project, "Bash", "t1", command="rm -rf src ../elsewhere TOKEN=abc"))
    made = cli.json("log", "--session", "s1")[0]
    call = cli.json("show", made["id"], "--session", "s1")["tool_calls"][0]
    assert call["paths"][:2] == ["src", "../elsewhere"]
    assert call["outside"] == ["../elsewhere"]
    assert call["risk"] == "risky"
    assert "abc" not in json.dumps(call["command"])


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize(
    ("setting", "event", "kind"),
    [
        ("auto_edit", 2, "tool"),
        ("auto_shell", 3, "risky"),
        ("auto_message", 1, "message"),
        ("auto_after_shell", 4, "tool"),
        ("auto_turn_end", 5, "tool"),
    ],
)
def test_each_trigger_can_be_turned_off(
    setting: str, event: int, kind: str, project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", setting, "off")
    events = recorded("claude-code", project, "rm -rf src")
    session = ("--session", events[0]["session_id"])
    _send(project, events[0])
    (project / "src" / "app.py").write_text("changed since\n")
    _send(project, events[event])
    assert _kinds(cli, *session) == ["initial"]
    cli.json("config", "set", setting, "on")
    _send(project, events[event])
    assert _kinds(cli, *session) == [kind, "initial"]


@pytest.mark.requirement("AU-1", "MC-1")
def test_an_agent_that_turns_a_trigger_off_and_on_is_heeded_with_the_next_event(
    project: Path, cli: CommandLine
) -> None:
    with SessionCheckpointer(project, "s1") as session:
        session.checkpoint("begin")
        for number, state in enumerate(("off", "on")):
            changed = ToolHandlers(session).call(
                "checkpoint_auto_configure", {"settings": {"auto_shell": state}}
            )
            assert "use it from now on" in changed.output
            _send(project, _tool(project, "Bash", f"t{number}", command="make"), "codex")
    assert _kinds(cli, "--session", "codex-s1") == ["tool", "initial"]


@pytest.mark.requirement("HK-2")
def test_the_same_event_from_two_settings_files_at_once_counts_once(
    project: Path, cli: CommandLine
) -> None:
    event = _tool(project, "Bash", "t1", command="rm -rf src")
    threads = [
        threading.Thread(target=forked_commands.call_hook, args=("claude-code", event, project))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _kinds(cli, "--session", "s1") == ["risky", "initial"]


@pytest.mark.requirement("HK-2")
def test_an_agent_that_runs_the_hooks_of_another_counts_once_and_as_itself(
    project: Path, cli: CommandLine
) -> None:
    event = recorded("cursor", project, "rm -rf src")[3]
    _send(project, event, "cursor")
    (project / "src" / "app.py").write_text("changed meanwhile\n")
    assert _send(project, event, "claude-code") == {}
    assert cli.json("status")["sessions"] == [event["session_id"]]
    assert _kinds(cli) == ["risky", "initial"]


@pytest.mark.usefixtures("settled")
@pytest.mark.requirement("HK-2")
def test_copilot_that_runs_the_hooks_of_claude_code_too_is_one_session(
    project: Path, cli: CommandLine
) -> None:
    """Its payload for those has the same session under other names, the time and no ids."""
    start, message, _, before, _, stop, end = recorded("copilot", project, "rm -rf src")
    common = {"session_id": start["sessionId"], "cwd": str(project)}
    common["timestamp"] = "2026-11-15T10:00:00.000Z"
    tool = {"tool_name": "Bash", "tool_input": {"command": "rm -rf src"}}
    for native, other in (
        (start, {"hook_event_name": "SessionStart", "source": "new"}),
        (message, {"hook_event_name": "UserPromptSubmit", "prompt": message["prompt"]}),
        (before, {"hook_event_name": "PreToolUse", **tool}),
        (stop, {"hook_event_name": "Stop", "transcript_path": "/t", "stop_reason": "end_turn"}),
        (end, {"hook_event_name": "SessionEnd", "reason": "complete"}),
    ):
        assert _send(project, native, "copilot") == {}
        assert _send(project, common | other) == {}
    assert cli.json("status")["sessions"] == [start["sessionId"]]
    assert _kinds(cli) == ["risky", "message", "initial"]


@pytest.mark.requirement("HK-2")
def test_a_time_in_an_event_of_claude_code_does_not_make_it_anothers(
    project: Path, cli: CommandLine
) -> None:
    event = _tool(project, "Bash", "t1", command="make") | {"transcript_path": "/t"}
    _send(project, event | {"timestamp": "2026-11-15T10:00:00.000Z"})
    _send(project, _tool(project, "Bash", "t2", command="make"))
    assert cli.json("status")["sessions"] == ["s1"]


@pytest.mark.requirement("AU-1")
def test_the_same_id_with_another_command_is_another_call(project: Path, cli: CommandLine) -> None:
    _send(project, _tool(project, "Bash", "call_1", command="make a"))
    (project / "made").write_text("a")
    _send(project, _tool(project, "Bash", "call_1", command="make b"))
    assert _kinds(cli, "--session", "s1") == ["tool", "tool", "initial"]


@pytest.mark.requirement("AU-1")
def test_the_same_id_with_another_edit_of_the_same_file_is_another_call(
    project: Path, cli: CommandLine
) -> None:
    """Some models restart the count of their calls in every turn."""
    for content in ("one", "two"):
        _send(project, _tool(project, "Write", "call_0", file_path="a", content=content))
        (project / "a").write_text(content)
    assert _kinds(cli, "--session", "s1") == ["tool", "tool", "initial"]


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize("opened_on", ["/", "~"])
def test_an_agent_that_was_started_above_the_project_is_protected_where_it_stands(
    opened_on: str, project: Path, cli: CommandLine
) -> None:
    event = recorded("opencode", project, "rm -rf src")[3]
    event["worktree"] = str(Path(opened_on).expanduser())
    _send(project, event, "opencode")
    assert _kinds(cli) == ["risky", "initial"]


@pytest.mark.requirement("AU-2")
def test_a_command_that_changed_nothing_leaves_no_checkpoint_behind(
    project: Path, cli: CommandLine
) -> None:
    events = recorded("claude-code", project, "ls")
    for event in events[3:6]:
        _send(project, event)
    assert _kinds(cli) == ["tool", "initial"]


@pytest.mark.requirement("AU-2")
def test_what_comes_after_a_command_is_not_taken_for_its_doing(
    project: Path, cli: CommandLine
) -> None:
    """The answer to an event after a tool does not wait: when it is dealt with, the next tool may
    have begun."""
    from holdfast.interfaces.agents import agent_named
    from holdfast.interfaces.hooks.translation import normalise
    from tests.support.agent_events import handle

    events = recorded("claude-code", project, "make a")
    _send(project, events[3])
    late = normalise(events[4], agent_named("claude-code"), {}, received_ns=1)
    next_one = {**events[3], "tool_use_id": "toolu_next", "tool_input": {"command": "make b"}}
    (project / "a").write_text("made by a")
    _send(project, next_one)
    (project / "b").write_text("half of b")
    assert handle(late).checkpoint is None
    told = [made["reasoning"] for made in cli.json("log")]
    assert told[0] == "Before Bash: make b"


@pytest.mark.requirement("SE-1")
def test_a_session_has_the_agents_name_ends_and_goes_on(project: Path, cli: CommandLine) -> None:
    from holdfast.bootstrap.workspace import open_workspace
    from holdfast.domain.ids import SessionId
    from holdfast.domain.sessions import SessionStatus

    events = recorded("codex", project, "make")
    name = SessionId(events[0]["session_id"])
    seen = []
    for event in (events[0], events[6], events[1]):
        _send(project, event, "codex")
        with open_workspace(project, create=False) as opened:
            session = opened.engine.vault.catalog.session(name)
            assert session is not None
            seen.append((session.agent, session.status))
    assert seen == [
        ("codex", SessionStatus.ACTIVE),
        ("codex", SessionStatus.ENDED),
        ("codex", SessionStatus.ACTIVE),
    ]


@pytest.mark.requirement("SE-1")
@pytest.mark.parametrize("begins", ["SessionStart", "PreToolUse"])
def test_an_agent_that_resumes_a_session_that_had_ended_is_notified_once(
    project: Path, cli: CommandLine, begins: str
) -> None:
    common = {"session_id": "s1", "cwd": str(project)}
    events = {
        "SessionStart": common | {"hook_event_name": "SessionStart", "source": "resume"},
        "SessionEnd": common | {"hook_event_name": "SessionEnd", "reason": "exit"},
        "PreToolUse": _tool(project, "Edit", "t1", file_path="a"),
        "PreToolUse again": _tool(project, "Edit", "t2", file_path="a"),
    }

    def told(name: str) -> bool:
        answer = call_hook("claude-code", events[name], project)
        assert (answer.status, answer.err) == (0, "")
        return "The session s1 had ended and is active again" in answer.out

    assert not told("SessionStart")
    assert not told("SessionEnd")
    assert cli.json("status", "--session", "s1")["session_status"] == "ended"
    assert told(begins)
    assert not told("PreToolUse again")
    assert cli.json("status", "--session", "s1")["session_status"] == "active"


@pytest.mark.requirement("SE-1", "CP-8")
def test_sessions_of_two_agents_with_one_id_stay_apart(project: Path, cli: CommandLine) -> None:
    _send(project, _tool(project, "Edit", "t1", file_path="a"))
    _send(project, {**_tool(project, "Edit", "t1", file_path="a"), "turn_id": "x"}, "codex")
    cli.json("checkpoint", "by hand", "--session", "codex-2")
    assert cli.json("status")["sessions"] == ["s1", "codex-s1", "codex-2"]


@pytest.mark.usefixtures("settled")
@pytest.mark.requirement("HK-2", "SE-1")
@pytest.mark.parametrize("given", ["", " ", "a\nb", "x" * 5000, "\ud800", " padded "])
def test_any_id_of_a_session_is_made_into_a_valid_one(
    given: str, project: Path, cli: CommandLine
) -> None:
    event = {**_tool(project, "Edit", "t1", file_path="a"), "session_id": given}
    _send(project, event)
    _send(project, {**event, "tool_use_id": "t2"})
    (name,) = cli.json("status")["sessions"]
    assert name.startswith("claude-code-")
    assert _kinds(cli, "--session", name) == ["tool", "initial"]


@pytest.mark.requirement("SE-1")
def test_an_archived_session_is_left_alone(project: Path, cli: CommandLine) -> None:
    from holdfast import SessionCheckpointer

    event = _tool(project, "Edit", "t1", file_path="a")
    _send(project, event)
    SessionCheckpointer(project, "s1").archive()
    _send(project, {**event, "tool_use_id": "t2"})
    assert cli.json("status")["sessions"] == ["s1", "claude-code-s1"]


@pytest.mark.requirement("AU-1")
def test_the_project_is_protected_wherever_in_it_the_agent_stands(
    project: Path, cli: CommandLine
) -> None:
    event = _tool(project / "src" / "deep", "Bash", "t1", command="rm -rf ../..")
    _send(project, event)
    assert cli.json("status")["workspace"] == str(project)
    assert cli.json("log")[0]["files"] >= 5
    opened_on = {"CLAUDE_PROJECT_DIR": str(project)}
    answer = call_hook(
        "claude-code", {**event, "tool_use_id": "t2"}, project, environment=opened_on
    )
    assert answer.json == {}
    assert not (project / "src" / ".holdfast").exists()


@pytest.mark.requirement("AU-1", "CP-13")
def test_the_project_is_protected_while_the_agent_is_in_a_directory_that_is_none(
    project: Path, cli: CommandLine
) -> None:
    elsewhere = project.parent / "scratch"
    elsewhere.mkdir()
    (elsewhere / "notes").write_text("mine\n")
    command = f"rm -rf {project}/src notes"
    call_hook(
        "claude-code",
        _tool(elsewhere, "Bash", "t1", command=command),
        elsewhere,
        environment={"CLAUDE_PROJECT_DIR": str(project)},
    )
    newest = cli.json("log")[0]
    assert (newest["kind"], newest["files"] >= 5) == ("risky", True)
    (call,) = cli.json("show", newest["id"])["tool_calls"]
    assert call["outside"] == ["../scratch/notes"]
    assert os.listdir(elsewhere) == ["notes"]


@pytest.mark.requirement("AU-1")
def test_a_project_that_the_agent_went_to_is_protected_instead(project: Path) -> None:
    other = project.parent / "other"
    (other / ".git").mkdir(parents=True)
    (other / "deep").mkdir()
    call_hook(
        "claude-code",
        _tool(other / "deep", "Bash", "t1", command="rm -rf ."),
        other / "deep",
        environment={"CLAUDE_PROJECT_DIR": str(project)},
    )
    assert (other / ".holdfast").exists()
    assert not (project / ".holdfast").exists()
