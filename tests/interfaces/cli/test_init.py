"""`holdfast init`: the store and the marker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("CL-1")
def test_init_makes_the_store_and_the_marker_and_says_where(
    cli: CommandLine, holdfast_home: Path
) -> None:
    made = cli.json("init")
    assert made["workspace"] == str(cli.workspace)
    assert made["created"] is True
    assert Path(made["store"]).is_relative_to(holdfast_home)
    assert (Path(made["store"]) / "store.json").is_file()
    assert (cli.workspace / ".holdfast" / "workspace.json").is_file()
    assert made["store"] in cli("init").out


def test_init_again_changes_nothing(cli: CommandLine) -> None:
    first = cli.json("init")
    assert cli.json("init") == first | {"created": False}
    assert "already protects" in cli("init").out


def test_init_below_a_workspace_makes_one_of_its_own(cli: CommandLine) -> None:
    outer = cli.json("init")
    inner = CommandLine(cli.workspace / "src")
    assert f"It lies in {cli.workspace}" in inner("init").out
    assert inner.json("init")["store"] != outer["store"]


def test_after_init_there_is_a_status_and_no_checkpoint(cli: CommandLine) -> None:
    cli.json("init")
    status = cli.json("status")
    assert (status["session_id"], status["head"], status["checkpoints"]) == (None, None, 0)
    assert "no checkpoint yet" in cli("status").out
