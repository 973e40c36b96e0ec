"""Warnings are for what a person should act on; everything else is said in passing."""

from __future__ import annotations

import pytest

from tests.components.git.repositories import git
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.hooks_here import call_hook

YELLOW = "\x1b[33m"

pytestmark = pytest.mark.requirement("RB-1")


@pytest.fixture
def daily(cli: CommandLine) -> CommandLine:
    """A repository with another one in it and an agent's open session; after the checkpoint
    `good` there was a commit and work that is neither saved nor committed."""
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    (place / "vendor").mkdir()
    git(place / "vendor", "init", "-q", "-b", "main")
    (place / "vendor" / "tool.py").write_text("tool\n")
    git(place / "vendor", "add", "-A")
    git(place / "vendor", "commit", "-qm", "tool")
    event = {
        "session_id": "agent",
        "cwd": str(place),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "go on",
    }
    call_hook("claude-code", event, place)
    cli.json("checkpoint", "it works", "--name", "good")
    (place / "README.md").write_text("committed since\n")
    git(place, "commit", "-qam", "second")
    (place / "src" / "app.py").write_text("not committed\n")
    (place / "vendor" / "tool.py").write_text("changed\n")
    return cli


def test_an_ordinary_restore_prints_no_warning(daily: CommandLine) -> None:
    planned = daily.json("restore", "good", "--dry-run")
    assert len(planned["warnings"]) >= 4
    assert planned["remarks"] == planned["warnings"]
    assert "warning:" not in daily("restore", "good", "--dry-run").err
    done = daily("restore", "good", "--yes")
    assert "warning:" not in done.err
    assert "in the repository vendor" in done.err
    assert "a commit would now contain" in done.err
    assert "saved first" not in done.err, "the result names the checkpoint that has it"
    assert "warning:" not in daily("undo", "--yes").err
    assert "warning:" not in daily("reset", "--yes").err


def test_nothing_is_yellow_in_the_preview_and_the_result_of_an_ordinary_restore(
    daily: CommandLine,
) -> None:
    with Screen(daily.workspace, "restore", "good", columns=80) as screen:
        preview = screen.read_until("[y/N]")
        screen.type("y\n")
        result = screen.finish()
    assert "warning:" not in preview + result
    assert "saved first" in preview
    assert f"{YELLOW}restore" in preview, "the colour of a file that is rewritten, and no other"
    told = [line for line in (preview + result).splitlines() if YELLOW in line]
    assert all(f"{YELLOW}restore" in line for line in told), told


def test_another_branch_is_a_warning(daily: CommandLine) -> None:
    git(daily.workspace, "checkout", "-q", "-b", "feature")
    planned = daily.json("restore", "good", "--dry-run")
    [drift] = [one for one in planned["warnings"] if "git is on feature" in one]
    assert drift not in planned["remarks"]
    assert "warning: the checkpoint was made on main" in daily("restore", "good", "--yes").err


def test_a_session_that_goes_on_is_a_remark(cli: CommandLine) -> None:
    cli.json("checkpoint", "one", "--session", "work")
    cli.json("sessions", "end", "work")
    (cli.workspace / "README.md").write_text("more\n")
    answer = cli("checkpoint", "two", "--session", "work")
    assert answer.err == "  the session 'work' had ended; it is active again\n"


@pytest.mark.requirement("RB-8", "RB-11")
@pytest.mark.parametrize("command", [("undo",), ("restore", "before")])
def test_files_that_the_user_was_not_shown_are_not_changed_by_a_yes(
    cli: CommandLine, command: tuple[str, ...]
) -> None:
    cli.save("before", "--name", "before")
    for name in ("README.md", "notes.txt"):
        (cli.workspace / name).write_text("changed\n")
    with Screen(cli.workspace, *command) as screen:
        screen.read_until("[y/N]")
        (cli.workspace / "precious.txt").write_text("written while the question was open\n")
        screen.type("y\n")
        shown = screen.finish()
    assert screen.status == 5
    assert "precious.txt has changed since the preview" in " ".join(shown.split())
    assert (cli.workspace / "precious.txt").exists()
    assert (cli.workspace / "README.md").read_text() == "changed\n"
    assert cli(*command, "--yes").status == 0
    assert not (cli.workspace / "precious.txt").exists()
