"""`holdfast init`: the store and the marker."""

from __future__ import annotations

import shutil
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
    assert f"It is inside {cli.workspace}" in inner("init").out
    assert inner.json("init")["store"] != outer["store"]


def test_after_init_there_is_a_status_and_no_checkpoint(cli: CommandLine) -> None:
    cli.json("init")
    status = cli.json("status")
    assert (status["session_id"], status["head"], status["checkpoints"]) == (None, None, 0)
    assert "no checkpoint yet" in cli("status").out


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "arguments",
    [
        *(("checkpoint", "x"), ("init",), ("status",), ("log",), ("diff",), ("restore",)),
        *(("undo",), ("redo",), ("show",), ("delete", "HEAD"), ("stats",), ("check",)),
        *(("config",), ("config", "set", "budget", "9")),
    ],
    ids=" ".join,
)
def test_a_store_that_is_gone_is_reported_by_every_command(
    cli: CommandLine, holdfast_home: Path, arguments: tuple[str, ...]
) -> None:
    cli.save()
    shutil.rmtree(cli.json("init")["store"])
    before = sorted(holdfast_home.rglob("*"))
    answer = cli(*arguments, "--json")
    assert answer.status == 6
    assert answer.error["code"] == "store_missing"
    assert "holdfast init --new-store" in answer.error["hint"]
    assert sorted(holdfast_home.rglob("*")) == before


@pytest.mark.requirement("CL-1")
def test_a_new_store_takes_the_place_of_a_lost_one_and_of_no_other(cli: CommandLine) -> None:
    first = cli.json("init", "--new-store")
    assert cli.json("init", "--new-store") == first | {"created": False}
    shutil.rmtree(first["store"])
    second = cli.json("init", "--new-store")
    assert second["created"] is True
    assert second["store"] != first["store"]
    cli.save()
    assert len(cli.json("log")) == 1


def test_below_a_workspace_whose_store_is_lost_one_can_start_again(cli: CommandLine) -> None:
    outer = cli.json("init")
    shutil.rmtree(outer["store"])
    inner = CommandLine(cli.workspace / "src")
    assert inner("checkpoint", "x").status == 6
    assert inner.json("init")["created"] is True
    assert inner("checkpoint", "x").status == 0
