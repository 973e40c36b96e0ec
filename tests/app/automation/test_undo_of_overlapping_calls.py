"""Undo names the calls of agents that overlapped, and does not take their work for the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.automation.test_two_agents_at_once import send
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("RB-11")


def _last(cli: CommandLine) -> str:
    return str(cli.json("status")["last"]["what"])


def _begin_both(project: Path) -> None:
    send(project, "one", "Pre", "t1", "Bash", command="make one")
    send(project, "two", "Pre", "t2", "Bash", command="make two")
    (project / "one.txt").write_text("one\n")
    send(project, "one", "Post", "t1", "Bash", command="make one")
    (project / "two.txt").write_text("two\n")


def test_the_call_that_ends_last_is_named(project: Path, cli: CommandLine) -> None:
    _begin_both(project)
    send(project, "two", "Post", "t2", "Bash", command="make two")
    assert _last(cli) == 'the Bash call "make two" by claude-code'
    cli.json("undo", "--yes")
    assert (project / "one.txt").exists()
    assert not (project / "two.txt").exists()
    assert 'the Bash call "make one" by claude-code' in _last(cli)


def test_a_call_in_progress_or_the_user_may_have_changed_it(
    project: Path, cli: CommandLine
) -> None:
    _begin_both(project)
    (project / "notes.txt").write_text("by hand\n")
    send(project, "one", "Pre", "t3", "Bash", command="make three")
    assert _last(cli) == 'the Bash call "make two" by claude-code or your edits'


def test_edits_after_all_calls_have_ended_are_the_users(project: Path, cli: CommandLine) -> None:
    _begin_both(project)
    send(project, "two", "Post", "t2", "Bash", command="make two")
    (project / "notes.txt").write_text("by hand\n")
    send(project, "one", "Pre", "t3", "Bash", command="make three")
    assert _last(cli) == 'your edits before the Bash call "make three"'


def test_two_edits_at_once_are_both_named(project: Path, cli: CommandLine) -> None:
    files = {"one": "src/app.py", "two": "notes.txt"}
    for moment in ("Pre", "Post"):
        for session, path in files.items():
            place = project / path
            send(project, session, moment, session, "Edit", file_path=str(place))
        for path in files.values():
            (project / path).write_text("edited\n")
    calls = [f'the Edit call "{path}" by claude-code' for path in ("notes.txt", "src/app.py")]
    assert _last(cli) == f"{' and '.join(calls)}, which overlapped"
    cli.json("undo", "--yes")
    assert all((project / path).read_text() != "edited\n" for path in files.values())
