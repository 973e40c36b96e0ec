"""Approve, wreck, reset: the story of a person who lets an agent go on, and regrets it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.tree_hash import describe


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    (project / "src" / "cart.py").write_text("def total():\n    return 0\n")
    (project / ".env").write_text("KEY=1\n")
    return CommandLine(project)


@pytest.mark.requirement("SE-5", "CL-1", "CL-5")
def test_approve_wreck_reset(cli: CommandLine) -> None:
    cli.save("before the agent starts")
    (cli.workspace / "src" / "cart.py").write_text("def total(items):\n    return sum(items)\n")
    cli.save("the total is computed", "--confidence", "0.9")
    (cli.workspace / "src" / "test_cart.py").write_text("from cart import total\n")
    good = describe(cli.workspace)

    approved = cli.json("approve", "-m", "totals are right, with a test")
    assert approved["new_session"] == "session_2"
    assert approved["commits_approved"] == 3
    assert cli.json("show", "approved")["id"] == approved["approved_commit"]

    shutil.rmtree(cli.workspace / "src")
    (cli.workspace / ".env").write_text("KEY=leaked\n")
    cli.save("tidied up")
    (cli.workspace / "notes.txt").write_text("never saved\n")
    wrecked = describe(cli.workspace)

    refused = cli("reset", "--json")
    assert (refused.status, refused.error["code"]) == (5, "needs_confirmation")
    assert describe(cli.workspace) == wrecked

    done = cli.json("reset", "--yes")
    assert done["reset_to"] == approved["approved_commit"]
    assert (done["new_session"], done["abandoned"]) == ("session_3", "session_2")
    assert done["verified"]
    assert describe(cli.workspace) == good

    rounds = cli.json("log", "--rounds")
    assert [(one["name"], one["status"]) for one in rounds] == [
        ("session_3", "active"),
        ("session_2", "abandoned"),
        ("session_1", "merged"),
    ]
    assert rounds[2]["message"] == "totals are right, with a test"

    # On second thought the notes were worth something.
    cli.json("restore", rounds[1]["head"], "notes.txt", "--yes")
    assert (cli.workspace / "notes.txt").read_text() == "never saved\n"
    cli.json("reset", "--yes")
    cli.json("undo", "--yes")
    assert (cli.workspace / "notes.txt").read_text() == "never saved\n"
