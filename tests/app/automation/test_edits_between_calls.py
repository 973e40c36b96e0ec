"""A person types while an agent works: undo of the agent's edit leaves that alone, and undo of what
the person typed leaves the agent's edit alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.daemon.server import Daemon
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import after, logged_checkpoints, send, tool_call
from tests.support.daemons import daemon_here

pytestmark = pytest.mark.requirement("RB-11", "AU-2")


def call(project: Path, use: str, tool: str, **asked: str) -> dict[str, Any]:
    return {**tool_call(project, use), "tool_name": tool, "tool_input": asked}


def edit(project: Path, use: str, path: Path, text: str, tool: str = "Edit") -> None:
    """A whole edit of an agent."""
    event = call(project, use, tool, file_path=str(path))
    send(project, event)
    path.write_text(text)
    send(project, after(event))


@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit", "NotebookEdit", "mcp__files__put"])
def test_what_a_person_typed_after_an_edit_is_a_step_of_its_own(
    tool: str, project: Path, cli: CommandLine
) -> None:
    app, notes = project / "src" / "app.py", project / "notes.txt"
    before = app.read_text()
    edit(project, "t1", app, "price = 3\n", tool)
    app.write_text("price = 3  # by hand\n")
    notes.write_text("by hand\n")

    said = cli("undo", "--yes").out
    assert "the unsaved changes since checkpoint" in said
    assert (app.read_text(), notes.read_text()) == ("price = 3\n", "price ideas, untracked\n")

    said = cli("undo", "--yes").out
    assert f'Undid the {tool} call "src/app.py" by claude-code' in said
    assert app.read_text() == before


def test_undo_of_an_edit_leaves_what_a_person_typed_before_it(
    project: Path, cli: CommandLine
) -> None:
    app, notes = project / "src" / "app.py", project / "notes.txt"
    edit(project, "t1", app, "price = 3\n")
    notes.write_text("by hand\n")
    edit(project, "t2", app, "price = 4\n")

    cli.json("undo", "--yes")
    assert (app.read_text(), notes.read_text()) == ("price = 3\n", "by hand\n")
    assert 'Undid your edits before the Edit call "src/app.py"' in cli("undo", "--yes").out
    assert (app.read_text(), notes.read_text()) == ("price = 3\n", "price ideas, untracked\n")


@pytest.mark.requirement("SE-12")
def test_edits_one_after_the_other_have_one_checkpoint_between_them(
    project: Path, cli: CommandLine
) -> None:
    app = project / "src" / "app.py"
    for number in (1, 2):
        edit(project, f"t{number}", app, f"price = {number + 2}\n")
    assert [reason for _, reason in logged_checkpoints(cli)] == [
        "After Edit: src/app.py",
        "After Edit: src/app.py",
        "Before Edit: src/app.py",
        "Start of the session with claude-code",
    ]
    assert cli.json("status")["last"]["what"] == 'the Edit call "src/app.py" by claude-code'


@pytest.mark.requirement("BX-1")
def test_lines_of_edits_side_by_side_are_credited_to_the_edit_of_their_file(
    project: Path, cli: CommandLine
) -> None:
    """The first one that ends has a checkpoint with what both did."""
    app, notes = project / "src" / "app.py", project / "notes.txt"
    first = call(project, "t1", "Edit", file_path=str(app))
    second = call(project, "t2", "Edit", file_path=str(notes))
    send(project, first)
    send(project, second)
    app.write_text("price = 3\n")
    notes.write_text("by the second\n")
    send(project, after(first))
    send(project, after(second))

    [origin] = cli.json("why", "src/app.py", "--session", "s1")["origins"]
    assert [one["paths"] for one in origin["tool_calls"]] == [[str(app)]]
    [origin] = cli.json("why", "notes.txt", "--session", "s1")["origins"]
    assert (origin["tool_calls"], origin["tool_use_id"]) == ([], None)
    assert origin["reasoning"] == "Edit: notes.txt"


@pytest.mark.requirement("CP-13", "SE-12")
@pytest.mark.parametrize("tool", ["Bash", "Edit"])
def test_a_file_outside_that_is_edited_again_comes_back_with_undo(
    tool: str, project: Path, cli: CommandLine
) -> None:
    """The checkpoint after another call has all that one before this edit would have, but does not
    say which file the edit is about."""
    outside = project.parent / "rc"
    outside.write_text("old\n")
    edit(project, "t1", outside, "first\n")
    app = project / "src" / "app.py"
    asked = {"command": "make"} if tool == "Bash" else {"file_path": str(app)}
    between = call(project, "t2", tool, **asked)
    send(project, between)
    app.write_text("price = 3\n")
    send(project, after(between))
    edit(project, "t3", outside, "second\n")

    assert cli("undo", "--yes").status == 0
    assert (outside.read_text(), app.read_text()) == ("first\n", "price = 3\n")


@pytest.mark.requirement("AU-1", "HK-3")
@pytest.mark.parametrize(("state", "failed"), [("off", False), ("on", True)])
def test_nothing_is_saved_after_an_edit_where_that_is_off_or_the_edit_failed(
    state: str, failed: bool, project: Path, cli: CommandLine
) -> None:
    """The agent waits for the answer about a failure, and a failed edit has changed nothing."""
    cli.json("config", "set", "auto_after_edit", state)
    app = project / "src" / "app.py"
    event = call(project, "t1", "Edit", file_path=str(app))
    send(project, event)
    app.write_text("price = 3\n")
    ended = {**after(event), "hook_event_name": "PostToolUseFailure", "error": "no match"}
    send(project, ended if failed else after(event))
    assert logged_checkpoints(cli)[0][1] == "Before Edit: src/app.py"


@pytest.fixture
def no_later_work(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that left its work to a child process, or to a thread of the daemon, would leave it
    undone: a person may be quicker than either."""
    place = tmp_path_factory.mktemp("no-later-work")
    (place / "sitecustomize.py").write_text("import os\nos.fork = lambda: 1\n")
    path = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setattr(Daemon, "run_in_background", lambda self, work: None)


@pytest.mark.usefixtures("runtime", "no_later_work")
@pytest.mark.parametrize("switch", ["on", "off"])
@pytest.mark.parametrize("tool", ["Edit", "Bash"])
def test_what_a_person_types_the_moment_a_hook_has_answered_is_a_step_of_its_own(
    tool: str, switch: str, project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", switch)
    app, notes = project / "src" / "app.py", project / "notes.txt"
    with daemon_here() as daemon:
        edit(project, "t1", app, "price = 3\n", tool)
        assert (daemon.requests > 0) == (switch == "on")
        app.write_text("price = 3  # by hand\n")
        notes.write_text("by hand\n")

        assert "the unsaved changes since checkpoint" in cli("undo", "--yes").out
        assert (app.read_text(), notes.read_text()) == ("price = 3\n", "price ideas, untracked\n")
        assert f"Undid the {tool} call" in cli("undo", "--yes").out
        assert app.read_text() == "price = 2\n"


@pytest.mark.usefixtures("no_later_work")
def test_the_end_of_a_turn_is_saved_before_the_hook_answers(
    project: Path, cli: CommandLine
) -> None:
    """An agent's background process has changed a file; then the person has the word."""
    app = project / "src" / "app.py"
    edit(project, "t1", app, "price = 3\n")
    app.write_text("price = 4\n")
    send(project, {"session_id": "s1", "cwd": str(project), "hook_event_name": "Stop"})
    app.write_text("price = 4  # by hand\n")

    cli.json("undo", "--yes")
    assert app.read_text() == "price = 4\n"
