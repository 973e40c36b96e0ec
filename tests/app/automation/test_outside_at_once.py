"""Undo brings back a file outside that a call changed late: after a checkpoint of another call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import after, send, tool_call

pytestmark = pytest.mark.requirement("CP-13", "RB-10")

SOUND = "alias ll='ls -l'\n"


@pytest.fixture
def rc(project: Path) -> Path:
    """A file of the user's beside the project."""
    file = project.parent / "dotfiles" / "rc"
    file.parent.mkdir()
    file.write_text(SOUND)
    return file


def _write(project: Path, use: str, path: Path, session: str = "s1") -> dict[str, Any]:
    event = tool_call(project, use)
    written = {"file_path": str(path), "content": "x"}
    return {**event, "session_id": session, "tool_name": "Write", "tool_input": written}


@pytest.mark.parametrize("other", ["s1", "s2"])
@pytest.mark.parametrize("changed_between", [False, True])
@pytest.mark.parametrize("changed_later", [False, True])
def test_a_call_that_is_still_running_at_another_checkpoint(
    project: Path,
    rc: Path,
    cli: CommandLine,
    other: str,
    changed_between: bool,
    changed_later: bool,
) -> None:
    app = project / "src" / "app.py"
    send(project, _write(project, "t1", rc))
    if changed_between:
        app.write_text("between\n")
    send(project, _write(project, "t2", app, other))
    before = app.read_text()
    rc.write_text("wrecked\n")
    send(project, after(_write(project, "t1", rc)))
    if changed_later:  # after what the ended call left was saved: a step of its own
        app.write_text("later\n")
        cli.json("undo", "--yes")
        assert (app.read_text(), rc.read_text()) == (before, "wrecked\n")
    shown = cli("undo", "--dry-run").out
    assert str(rc) in shown
    cli.json("undo", "--yes")
    assert rc.read_text() == SOUND
    assert app.read_text() == before
    cli.json("redo", "--yes")
    assert rc.read_text() == "wrecked\n"


@pytest.mark.parametrize("changed_between", [False, True])
def test_a_call_that_had_ended_has_not_done_what_came_later(
    project: Path, rc: Path, cli: CommandLine, changed_between: bool
) -> None:
    app = project / "src" / "app.py"
    send(project, _write(project, "t1", rc))
    send(project, after(_write(project, "t1", rc)))
    if changed_between:
        app.write_text("between\n")
    send(project, _write(project, "t2", app, "s2"))
    rc.write_text("by hand\n")
    app.write_text("later\n")
    cli.json("undo", "--yes")
    assert rc.read_text() == "by hand\n"


def test_a_call_that_names_it_again_with_nothing_changed_since(
    project: Path, rc: Path, cli: CommandLine
) -> None:
    send(project, _write(project, "t1", rc))
    send(project, after(_write(project, "t1", rc)))
    send(project, _write(project, "t2", project / "src" / "app.py"))
    send(project, after(_write(project, "t2", project / "src" / "app.py")))
    send(project, _write(project, "t3", rc))
    rc.write_text("wrecked\n")
    cli.json("undo", "--yes")
    assert rc.read_text() == SOUND


def test_a_late_change_that_was_saved_is_a_step_of_its_own(
    project: Path, rc: Path, cli: CommandLine
) -> None:
    app = project / "src" / "app.py"
    send(project, _write(project, "t1", rc))
    app.write_text("between\n")
    send(project, _write(project, "t2", app, "s2"))
    rc.write_text("wrecked\n")
    send(project, after(_write(project, "t1", rc)))
    cli.save("with the late change")
    cli.json("undo", "--yes")
    assert rc.read_text() == SOUND
    assert app.read_text() == "between\n"


@pytest.fixture
def other(project: Path) -> Path:
    """Another workspace of the user."""
    place = project.parent / "other"
    place.mkdir()
    (place / "app.py").write_text("print(1)\n")
    CommandLine(place).save("begin")
    return place


def test_two_workspaces_that_captured_the_same_file_lose_no_version(
    project: Path, rc: Path, cli: CommandLine, other: Path
) -> None:
    for workspace, session, content in ((project, "s1", "first\n"), (other, "s2", "second\n")):
        event = _write(workspace, "t1", rc, session)
        send(workspace, event)
        rc.write_text(content)
        send(workspace, after(event))
    cli.json("undo", "--yes")
    assert rc.read_text() == SOUND
    cli.json("redo", "--yes")
    assert rc.read_text() == "second\n"
    CommandLine(other).json("undo", "--yes")
    assert rc.read_text() == "first\n"


@pytest.mark.parametrize("undone_in", ["shop", "other"])
def test_a_file_in_another_workspace_comes_back_by_the_undo_of_either(
    project: Path, other: Path, undone_in: str
) -> None:
    file = other / "app.py"
    event = _write(project, "t1", file)
    send(project, event)
    file.write_text("changed\n")
    send(project, after(event))
    CommandLine(project.parent / undone_in).json("undo", "--yes")
    assert file.read_text() == "print(1)\n"
