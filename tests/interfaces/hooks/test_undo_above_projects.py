"""`undo` above several projects names those of them in which an agent changed something later."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import tool_call
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("RB-11", "CP-16")


@pytest.fixture
def code(project: Path) -> Path:
    """A directory with two projects; the agent works in it and wrecks one of them."""
    code = project.parent / "code"
    for name in ("alpha", "beta"):
        (code / name / "src").mkdir(parents=True)
        subprocess.run(("git", "init", "-q"), cwd=code / name, check=True)
        (code / name / "src" / "app.py").write_text("print(1)\n")
    return code


def _wreck(code: Path, use: str = "t1") -> None:
    event = tool_call(code, use, "rm -rf beta/src")
    assert call_hook("claude-code", event, code).status == 0
    shutil.rmtree(code / "beta" / "src")


def test_where_nothing_was_ever_saved(code: Path) -> None:
    _wreck(code)
    above = CommandLine(code)
    answer = above("undo", "--yes")
    assert answer.status == 4
    assert "holdfast -C beta undo" in answer.err
    assert "alpha" not in answer.err
    assert "holdfast -C beta undo" in above("undo", "--json").error["hint"]
    CommandLine(code / "beta").json("undo", "--yes")
    assert (code / "beta" / "src" / "app.py").read_text() == "print(1)\n"


def test_where_nothing_has_changed_since(code: Path) -> None:
    above = CommandLine(code)
    above.json("init")
    (code / "notes.txt").write_text("notes\n")
    above.save("above the projects")
    _wreck(code)
    answer = above("undo", "--yes")
    assert answer.status == 4
    assert "Nothing to undo" in answer.err
    assert "holdfast -C beta undo" in answer.err


def test_where_something_older_can_be_undone(code: Path) -> None:
    above = CommandLine(code)
    above.json("init")
    (code / "notes.txt").write_text("notes\n")
    above.save("above the projects")
    (code / "notes.txt").write_text("changed\n")
    above.save("changed")
    _wreck(code)
    answer = above("undo", "--dry-run")
    assert "holdfast -C beta undo" in answer.out + answer.err
    CommandLine(code / "beta").json("undo", "--yes")
    above.json("undo", "--yes")
    assert (code / "notes.txt").read_text() == "notes\n"
