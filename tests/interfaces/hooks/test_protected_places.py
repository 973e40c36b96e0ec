"""Where the work of an agent is saved: in the project, or in a place that it leaves out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine, command
from tests.support.daemon_calls import tool_call as _before
from tests.support.hooks_here import call_hook


def _send(project: Path, event: dict[str, Any]) -> None:
    assert call_hook("claude-code", event, project).json == {}


def _worktree(project: Path) -> Path:
    """A worktree where agents put theirs, in a directory that the project ignores."""
    (project / ".gitignore").write_text(".env\n.worktrees/\n")
    place = project / ".worktrees" / "feature"
    subprocess.run(["git", "worktree", "add", "-q", str(place)], cwd=project, check=True)
    return place


@pytest.mark.requirement("AU-1", "HK-2")
@pytest.mark.parametrize("opened_on", ["the project", "the worktree", "nothing that is told"])
def test_work_in_a_worktree_that_the_project_ignores_is_protected(
    opened_on: str, project: Path, cli: CommandLine
) -> None:
    _send(project, _before(project, "t0", "true"))
    worktree = _worktree(project)
    (worktree / "deep").mkdir()
    (worktree / "deep" / "work").write_text("not committed\n")
    told = {"the project": str(project), "the worktree": str(worktree)}.get(opened_on, "")
    call_hook(
        "claude-code",
        _before(worktree / "deep", "t1", "rm work"),
        worktree / "deep",
        environment={"CLAUDE_PROJECT_DIR": told},
    )
    (worktree / "deep" / "work").unlink()
    there = CommandLine(worktree)
    assert there.json("status")["workspace"] == str(worktree)
    there.json("restore", "HEAD", "--yes")
    assert (worktree / "deep" / "work").read_text() == "not committed\n"
    _send(project, _before(project, "t2", "make"))
    assert cli.json("log")[0]["reasoning"] == "Before Bash: make"


@pytest.mark.requirement("AU-1")
def test_a_repository_that_is_saved_with_the_project_stays_a_part_of_it(
    project: Path, cli: CommandLine
) -> None:
    nested = project / "libraries" / "nested"
    nested.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=nested, check=True)
    (nested / "code").write_text("1\n")
    call_hook(
        "claude-code",
        _before(nested, "t1", "rm -rf ../../src"),
        nested,
        environment={"CLAUDE_PROJECT_DIR": str(project)},
    )
    assert not (nested / ".holdfast").exists()
    files = [entry["path"] for entry in cli.json("show", "HEAD", "--files")["entries"]]
    assert {"libraries/nested/code", "src/app.py"} <= set(files)


@pytest.mark.requirement("AU-1")
def test_an_agent_that_was_opened_on_an_ignored_directory_is_protected_there(
    project: Path,
) -> None:
    _send(project, _before(project, "t0", "true"))
    inside = project / "node_modules" / "demo"
    inside.mkdir(parents=True)
    (inside / "page").write_text("1\n")
    call_hook(
        "claude-code",
        _before(inside, "t1", "rm page"),
        inside,
        environment={"CLAUDE_PROJECT_DIR": str(inside)},
    )
    files = CommandLine(inside).json("show", "HEAD", "--files")["entries"]
    assert [entry["path"] for entry in files] == ["page"]


@pytest.mark.requirement("AU-1", "HK-2")
def test_an_agent_whose_directory_is_gone_is_protected_in_its_project(
    project: Path, cli: CommandLine
) -> None:
    gone = project / "gone" / "deeper"
    gone.mkdir(parents=True)
    done = subprocess.run(
        ["sh", "-c", 'rm -r ../../gone && exec "$@"', "sh", *command("hook", "codex")],
        input=json.dumps(_before(gone, "t1", "rm -rf src")).encode(),
        cwd=gone,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    assert [made["kind"] for made in cli.json("log", "--session", "s1")] == ["risky", "initial"]
