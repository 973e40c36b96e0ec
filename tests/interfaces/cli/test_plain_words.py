"""What screens say about calls, messages and git is what a person would say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.components.git.repositories import git
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hooks_here import call_hook


@pytest.fixture
def asked(cli: CommandLine) -> CommandLine:
    """An agent was asked for something, and has edited a file."""
    place = cli.workspace
    event: dict[str, Any] = {"session_id": "agent", "cwd": str(place)}
    prompt = event | {"hook_event_name": "UserPromptSubmit", "prompt": "add a greeting"}
    call_hook("claude-code", prompt, place)
    command = "sed -i s/hello/greeting/ README.md"
    call = event | {"tool_name": "Bash", "tool_input": {"command": command}}
    call_hook("claude-code", call | {"hook_event_name": "PreToolUse"}, place)
    (place / "README.md").write_text("greeting\n")
    call_hook("claude-code", call | {"hook_event_name": "PostToolUse", "tool_response": {}}, place)
    cli.json("checkpoint", "done", "--session", "agent")
    return cli


@pytest.mark.requirement("CL-2")
def test_tool_calls_are_printed_in_one_plain_form(asked: CommandLine) -> None:
    [before] = [one for one in asked.json("log") if one["reasoning"].startswith("Before Bash")]
    shown = asked("show", before["id"]).out
    assert "tool Bash: sed -i s/hello/greeting/ README.md" in shown
    found = asked("search", "greeting").out
    assert "  Before Bash: sed -i s/hello/greeting/ README.md" in found
    assert "tool call: " not in found  # the reason has it
    told = asked("why", "README.md:1").out
    assert "tool call  Bash: sed -i s/hello/greeting/ README.md" in told
    assert "tool='Bash'" not in shown + found + told
    assert "'" not in found


@pytest.mark.requirement("CL-2")
def test_the_first_message_is_number_one_on_a_screen_and_zero_as_data(asked: CommandLine) -> None:
    assert "message     1, user: add a greeting" in asked("show", "HEAD").out
    assert asked.json("show", "HEAD")["message_index"] == 0
    assert "message 1 (user): add a greeting" in asked("search", "greeting").out
    assert "asked      1, user: add a greeting" in asked("why", "README.md:1").out


@pytest.mark.requirement("GT-1")
def test_results_say_where_git_is(cli: CommandLine) -> None:
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    commit = git(place, "rev-parse", "HEAD").strip()
    cli.json("checkpoint", "good")
    (place / "README.md").write_text("other\n")
    cli.json("checkpoint", "other")
    assert f"  git: main@{commit[:7]}\n" in cli("restore", "HEAD~1", "--yes").out
    assert f"  git: main@{commit[:7]}, 1 dirty\n" in cli("undo", "--yes").out
    again = cli.json("redo", "--yes")
    assert again["git_now"] == {"branch": "main", "commit": commit, "dirty": 0}
    assert f"  git: main@{commit[:7]}" in cli("reset", "--yes").out


def test_a_restore_into_another_session_does_not_call_saved_work_unsaved(cli: CommandLine) -> None:
    cli.json("checkpoint", "good", "--name", "good", "--session", "one")
    (cli.workspace / "README.md").write_text("other\n")
    cli.json("checkpoint", "other", "--session", "two")
    assert cli.json("restore", "good", "--dry-run")["warnings"] == []


@pytest.mark.requirement("CL-8")
def test_the_way_back_that_checkpoint_names_leads_back(cli: CommandLine) -> None:
    first = cli("checkpoint", "one", "--name", "good", "--session", "one").out
    assert "to go back: holdfast restore good\n" in first
    (cli.workspace / "README.md").write_text("two\n")
    second = cli("checkpoint", "two", "--name", "good", "--session", "two").out
    reference = second.partition("to go back: holdfast restore ")[2].split()[0]
    (cli.workspace / "README.md").write_text("three\n")
    assert cli("restore", reference, "--yes").status == 0
    assert (cli.workspace / "README.md").read_text() == "two\n"
