"""Two agents work at once: `why` names all agents that may have written a line, and never
guesses."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.hooks_here import call_hook

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


def origin(cli: CommandLine, session: str | None, line: str) -> dict[str, Any]:
    """Where a line comes from, asked of a session or of the whole workspace."""
    chosen = () if session is None else ("--session", session)
    found = cli.json("why", "src/app.py", *chosen)
    (place,) = [one["origin"] for one in found["lines"] if one["text"] == line]
    told: dict[str, Any] = found["origins"][place]
    return told


def append(project: Path, line: str) -> None:
    with (project / "src" / "app.py").open("a") as file:
        file.write(f"{line}\n")


def edit(project: Path, session: str, use: str, line: str, named: str = "src/app.py") -> None:
    """A whole call, which adds a line to the file."""
    file_path = str(project / named)
    send(project, session, "Pre", use, "Edit", file_path=file_path)
    append(project, line)
    send(project, session, "Post", use, "Edit", file_path=file_path)


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


def test_three_agents_one_after_the_other_are_credited_with_their_own_lines(
    begun: Path, cli: CommandLine
) -> None:
    calls = [("one", "1"), ("two", "2"), ("three", "3"), ("one", "4"), ("two", "5"), ("one", "6")]
    for session, use in calls:
        edit(begun, session, use, f"line of call {use}")
    send(begun, "three", "Pre", "7", "Bash", command="make")
    append(begun, "line of call 7")
    send(begun, "three", "Post", "7", "Bash", command="make")

    # The first call found everything as it was: only the checkpoint after it is its own.
    for session, use in [*calls, ("three", "7")]:
        told = origin(cli, None, f"line of call {use}")
        assert (told["session_id"], told["tool_use_id"]) == (session, use)
        assert (told["own"], told["others"], told["by_hand"]) == (True, [], False)
    assert "session    three" in cli("why", "src/app.py:8").out


def test_lines_that_a_person_wrote_between_two_agents_are_not_an_agents(
    begun: Path, cli: CommandLine
) -> None:
    time.sleep(0.1)  # file times may be some milliseconds behind the clock
    append(begun, "by hand")
    edit(begun, "one", "1", "by the agent")
    send(begun, "two", "Pre", "2", "Bash", command="true")
    send(begun, "two", "Post", "2", "Bash", command="true")
    edit(begun, "one", "3", "by the agent again")
    time.sleep(0.1)
    append(begun, "by hand after the edit")
    send(begun, "two", "Pre", "4", "Bash", command="true")

    told = origin(cli, None, "by hand")
    assert (told["own"], told["others"], told["by_hand"]) == (False, [], True)
    assert (told["reasoning"], told["tool_calls"]) == (None, [])
    assert "written by a person or a program" in cli("why", "src/app.py:2").out
    told = origin(cli, None, "by the agent")
    assert (told["session_id"], told["tool_use_id"], told["by_hand"]) == ("one", "1", False)
    told = origin(cli, None, "by the agent again")
    assert (told["session_id"], told["tool_use_id"], told["by_hand"]) == ("one", "3", False)
    told = origin(cli, None, "by hand after the edit")
    assert (told["session_id"], told["others"], told["by_hand"]) == (None, [], True)


def test_lines_that_one_checkpoint_has_first_are_not_distinguished(
    begun: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "auto_after_edit", "off")
    edit(begun, "one", "1", "by the agent")
    send(begun, "two", "Pre", "2", "Bash", command="true")
    send(begun, "two", "Post", "2", "Bash", command="true")
    edit(begun, "one", "3", "by the agent again")
    time.sleep(0.1)  # file times may be some milliseconds behind the clock
    append(begun, "by hand after the edit")
    send(begun, "two", "Pre", "4", "Bash", command="true")

    told = origin(cli, None, "by hand after the edit")
    assert (told["session_id"], told["tool_use_id"], told["by_hand"]) == ("one", "3", True)
    assert "or by      a person or a program" in cli("why", "src/app.py:4").out
    assert "an agent, a person or a program" in cli("why", "src/app.py").out


def test_calls_on_one_file_that_overlapped_are_all_named(begun: Path, cli: CommandLine) -> None:
    path = str(begun / "src" / "app.py")
    for session in ("one", "two", "three"):
        send(begun, session, "Pre", f"{session}-1", "Edit", file_path=path)
    append(begun, "whose is this")
    for session in ("one", "two", "three"):
        send(begun, session, "Post", f"{session}-1", "Edit", file_path=path)
    edit(begun, "two", "two-2", "of the second")
    send(begun, "one", "Pre", "one-2", "Bash", command="true")

    told = origin(cli, None, "whose is this")
    assert {one["session_id"] for one in told["others"]} == {"one", "two", "three"}
    assert (told["own"], told["tool_calls"], told["reasoning"]) == (False, [], None)
    shown = cli("why", "src/app.py:2").out
    assert shown.count("written by Edit of session") == 1
    assert shown.count("or by      Edit of session") == 2
    told = origin(cli, None, "of the second")
    assert (told["session_id"], told["tool_use_id"], told["others"]) == ("two", "two-2", [])


def test_an_edit_through_a_link_is_credited_to_its_agent(begun: Path, cli: CommandLine) -> None:
    (begun / "link.py").symlink_to("src/app.py")
    edit(begun, "one", "1", "of the first")
    edit(begun, "two", "2", "through the link", named="link.py")
    edit(begun, "one", "3", "of the first again")

    told = origin(cli, None, "through the link")
    assert [(one["session_id"], one["tool"]) for one in told["others"]] == [("two", "Edit")]
    assert (told["own"], told["by_hand"]) == (False, False)


@pytest.mark.requirement("RB-2")
def test_lines_that_an_undo_brought_back_belong_to_their_writer(
    begun: Path, cli: CommandLine
) -> None:
    edit(begun, "one", "1", "of the first")
    edit(begun, "two", "2", "of the second")
    send(begun, "one", "Pre", "3", "Bash", command="rm src/app.py")
    (begun / "src" / "app.py").unlink()
    send(begun, "one", "Post", "3", "Bash", command="rm src/app.py")
    assert cli("undo", "--yes").status == 0

    edit(begun, "two", "4", "saved by a restore only")
    assert cli("restore", "HEAD~1", "--yes").status == 0
    assert cli("undo", "--yes").status == 0

    for session, line in (
        ("one", "of the first"),
        ("two", "of the second"),
        ("two", "saved by a restore only"),
    ):
        assert origin(cli, None, line)["session_id"] == session


def test_a_manual_checkpoint_between_two_calls_hides_no_agent(
    begun: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "auto_after_edit", "off")
    edit(begun, "one", "1", "of the first")
    cli.save("looks good so far")

    told = origin(cli, None, "of the first")
    assert told["reasoning"] == "looks good so far"
    assert [(one["session_id"], one["tool"]) for one in told["others"]] == [("one", "Edit")]


@pytest.mark.requirement("RB-1")
def test_a_preview_names_files_that_someone_else_changed(begun: Path, cli: CommandLine) -> None:
    edit(begun, "one", "one-1", "by one")
    (begun / "mine.txt").write_text("by a person\n")
    for moment in ("Pre", "Post"):
        send(begun, "two", moment, "two-1", "Bash", command="true")
    theirs = str(begun / "theirs.txt")
    send(begun, "two", "Pre", "two-2", "Write", file_path=theirs)
    (begun / "theirs.txt").write_text("by two\n")
    send(begun, "two", "Post", "two-2", "Write", file_path=theirs)
    cli.json("checkpoint", "now", "--session", "two")
    planned = cli.json("restore", "one:initial", "--dry-run")
    told = [text for text in planned["remarks"] if "changed by" in text]
    assert told == [
        "mine.txt was changed by a person or a program since then; it is saved first",
        "theirs.txt was changed by claude-code in another session since then; it is saved first",
    ]
    cli.json("checkpoint", "by hand", "--session", "no-agent", "--name", "mine")
    (begun / "mine.txt").write_text("again\n")
    cli.json("checkpoint", "by hand again", "--session", "no-agent")
    alone = cli.json("restore", "no-agent:mine", "--dry-run")["warnings"]
    assert not [text for text in alone if "changed by" in text]
