"""Two agents work at once: `why` names whoever may have written a line, and never guesses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.hooks.hook_process import call_hook

pytestmark = pytest.mark.requirement("BX-1")


def send(project: Path, session: str, moment: str, use: str, tool: str, **given: Any) -> None:
    event = {
        "session_id": session,
        "cwd": str(project),
        "hook_event_name": f"{moment}ToolUse",
        "tool_name": tool,
        "tool_input": given,
        "tool_use_id": use,
    }
    if moment == "Post":
        event["tool_response"] = {"stdout": ""}
    answer = call_hook("claude-code", event, project)
    assert (answer.status, answer.err) == (0, "")


def origin(cli: CommandLine, session: str, line: str) -> dict[str, Any]:
    """Where a line comes from, asked of a session."""
    found = cli.json("why", "src/app.py", "--session", session)
    (place,) = [one["origin"] for one in found["lines"] if one["text"] == line]
    told: dict[str, Any] = found["origins"][place]
    return told


def append(project: Path, line: str) -> None:
    with (project / "src" / "app.py").open("a") as file:
        file.write(f"{line}\n")


@pytest.fixture
def begun(project: Path, cli: CommandLine) -> Path:
    """Both sessions have begun, and seen the same."""
    for session in ("one", "two"):
        send(project, session, "Pre", f"{session}-0", "Bash", command="true")
        send(project, session, "Post", f"{session}-0", "Bash", command="true")
    return project


def test_both_are_named_where_their_commands_overlapped(begun: Path, cli: CommandLine) -> None:
    send(begun, "one", "Pre", "one-1", "Bash", command="make format")
    send(begun, "two", "Pre", "two-1", "Bash", command="make lint")
    append(begun, "whose is this")
    send(begun, "one", "Post", "one-1", "Bash", command="make format")
    send(begun, "two", "Post", "two-1", "Bash", command="make lint")
    for session, other in (("one", "two"), ("two", "one")):
        told = origin(cli, session, "whose is this")
        assert told["own"] is True
        assert [(o["session_id"], o["agent"], o["tool"]) for o in told["others"]] == [
            (other, "claude-code", "Bash")
        ]
        shown = cli("why", "src/app.py:2", "--session", session).out
        assert f"or by      Bash of session {other} (claude-code)" in shown
    assert "one of several agents at once" in cli("why", "src/app.py", "--session", "one").out


@pytest.mark.requirement("RB-11", "SE-12")
def test_a_state_that_one_agent_knows_from_before_the_others_work_is_saved_again(
    begun: Path, cli: CommandLine
) -> None:
    send(begun, "one", "Pre", "one-1", "Bash", command="git checkout .")
    send(begun, "two", "Pre", "two-1", "Bash", command="make lint")
    before = (begun / "src" / "app.py").read_text()
    append(begun, "by two")
    send(begun, "two", "Post", "two-1", "Bash", command="make lint")
    (begun / "src" / "app.py").write_text(before)
    send(begun, "one", "Post", "one-1", "Bash", command="git checkout .")
    append(begun, "by hand")

    assert cli("undo", "--yes").status == 0

    assert (begun / "src" / "app.py").read_text() == before
    assert cli("undo", "--yes").status == 0
    assert (begun / "src" / "app.py").read_text() == before + "by two\n"


def test_the_other_agent_alone_is_named_where_only_its_call_was_running(
    begun: Path, cli: CommandLine
) -> None:
    send(begun, "one", "Pre", "one-1", "Bash", command="make format")
    append(begun, "of the first")
    send(begun, "one", "Post", "one-1", "Bash", command="make format")
    send(begun, "two", "Pre", "two-1", "Bash", command="make lint")
    append(begun, "of the second")
    send(begun, "two", "Post", "two-1", "Bash", command="make lint")
    told = origin(cli, "two", "of the first")
    assert (told["own"], told["tool_calls"], told["reasoning"]) == (False, [], None)
    assert [one["session_id"] for one in told["others"]] == ["one"]
    assert "Bash of session one (claude-code)" in cli("why", "src/app.py", "--session", "two").out
    told = origin(cli, "two", "of the second")
    assert (told["own"], told["others"]) == (True, [])
    assert "make lint" in told["reasoning"]
    told = origin(cli, "one", "of the first")
    assert (told["own"], told["others"]) == (True, [])


def test_an_edit_of_another_file_is_not_named(begun: Path, cli: CommandLine) -> None:
    send(begun, "one", "Pre", "one-1", "Edit", file_path=str(begun / "src" / "app.py"))
    send(begun, "two", "Pre", "two-1", "Edit", file_path=str(begun / "notes.txt"))
    append(begun, "of the first")
    (begun / "notes.txt").write_text("of the second\n")
    send(begun, "one", "Pre", "one-2", "Bash", command="true")
    send(begun, "two", "Pre", "two-2", "Bash", command="true")
    told = origin(cli, "one", "of the first")
    assert (told["own"], told["others"]) == (True, [])
    told = origin(cli, "two", "of the first")
    assert told["own"] is False
    assert [(one["session_id"], one["tool"]) for one in told["others"]] == [("one", "Edit")]
