"""`undo` names the call that made the change. A call that begins in a state that was saved a moment
ago has no checkpoint of its own; the one there is was made for another call, or after one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import after, send, tool_call
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("RB-11", "CL-8")


def begin(project: Path, use: str, tool: str, **asked: str) -> None:
    send(project, {**tool_call(project, use), "tool_name": tool, "tool_input": asked})


def end(project: Path, use: str, tool: str, **asked: str) -> None:
    send(project, after({**tool_call(project, use), "tool_name": tool, "tool_input": asked}))


def last(cli: CommandLine) -> str:
    return str(cli.json("status")["last"]["what"])


def test_a_command_that_changed_nothing_is_not_named_for_the_edit_after_it(
    project: Path, cli: CommandLine
) -> None:
    begin(project, "t1", "Bash", command="ls")
    end(project, "t1", "Bash", command="ls")
    edited = str(project / "src" / "app.py")
    begin(project, "t2", "Edit", file_path=edited)
    Path(edited).write_text("edited\n")
    end(project, "t2", "Edit", file_path=edited)
    assert last(cli) == 'the Edit call "src/app.py" by claude-code'


def test_a_command_that_changed_nothing_is_not_named_for_what_a_person_did(
    project: Path, cli: CommandLine
) -> None:
    begin(project, "t1", "Bash", command="ls")
    end(project, "t1", "Bash", command="ls")
    (project / "src" / "app.py").write_text("by hand\n")
    assert last(cli).startswith("the unsaved changes since checkpoint ")


def test_a_command_right_after_another_one_is_named(project: Path, cli: CommandLine) -> None:
    for number in (1, 2):
        command = f"echo {number} > made{number}.txt"
        begin(project, f"t{number}", "Bash", command=command)
        (project / f"made{number}.txt").write_text(f"{number}\n")
        end(project, f"t{number}", "Bash", command=command)
    assert last(cli) == 'the Bash call "echo 2 > made2.txt" by claude-code'
    cli.json("undo", "--yes")
    assert last(cli) == 'the Bash call "echo 1 > made1.txt" by claude-code'


def test_the_way_back_from_a_redo_of_a_whole_turn_goes_all_of_it(
    project: Path, cli: CommandLine
) -> None:
    message = {**tool_call(project, ""), "hook_event_name": "UserPromptSubmit", "prompt": "go"}
    send(project, message)
    for number in (1, 2):
        command = f"echo {number} > made{number}.txt"
        begin(project, f"t{number}", "Bash", command=command)
        (project / f"made{number}.txt").write_text(f"{number}\n")
        end(project, f"t{number}", "Bash", command=command)
    assert cli("undo", "--turn", "--yes").status == 0
    before = describe(project)
    said = cli("redo", "--yes").out
    assert describe(project) != before
    [way] = re.findall(r"back: holdfast (.*)", said)
    assert cli(*way.split()).status == 0
    assert describe(project) == before
