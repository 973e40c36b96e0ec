"""Undo of a command that unstaged files restores them, and says how to restore the index too."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.app.automation.test_first_captured import Agent
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("GT-7", "GT-2")


def git(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=project, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_files_that_are_no_longer_staged_are_reported_with_the_command_that_stages_them(
    project: Path, cli: CommandLine
) -> None:
    git(project, "add", "src/app.py", "notes.txt")
    (project / "src" / "app.py").write_text("price = 3\n")
    before = git(project, "status", "--short")
    Agent(project).run("git reset -q --hard")

    answer = cli("undo", "--yes")
    assert answer.status == 0
    words = "2 files that were staged at the checkpoint are not staged now; "
    [line] = [line for line in (answer.out + answer.err).splitlines() if words in line]
    command = line.partition(words)[2].partition(" also restores git")[0]
    assert cli(*shlex.split(command)[1:], "--yes").status == 0
    assert git(project, "status", "--short") == before


def test_nothing_is_reported_where_they_are_still_staged_or_none_were(
    project: Path, cli: CommandLine
) -> None:
    agent = Agent(project)
    agent.run("echo 'price = 4' > src/app.py")
    answer = cli("undo", "--yes")
    assert "staged" not in answer.out + answer.err
    git(project, "add", "src/app.py")
    agent.run("echo 'price = 4' > src/app.py")
    answer = cli("undo", "--yes")
    assert "staged" not in answer.out + answer.err
