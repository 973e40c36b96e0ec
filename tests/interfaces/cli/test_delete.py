"""`holdfast delete`: one checkpoint less, after a yes."""

from __future__ import annotations

import os

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("CL-1")
def test_a_deleted_checkpoint_is_gone_and_the_others_stay(cli: CommandLine) -> None:
    kept = cli.save("kept")
    dropped = cli.save("dropped", "--name", "bad")
    done = cli.json("delete", "bad", "--yes")
    assert (done["deleted"], done["name"]) == (dropped, "bad")
    assert [one["id"] for one in cli.json("log")] == [kept]
    assert cli("show", "bad").status == 4


@pytest.mark.requirement("RB-8", "CL-3")
def test_deleting_always_needs_a_yes(cli: CommandLine) -> None:
    identifier = cli.save()
    answer = cli("delete", "HEAD", "--json")
    assert answer.status == 5
    assert answer.error["code"] == "needs_confirmation"
    assert "--yes" in answer.error["hint"]
    assert cli.json("log")[0]["id"] == identifier
    assert cli("delete", "--json").error["code"] == "usage"


@pytest.mark.requirement("CL-2")
def test_the_space_that_a_delete_gave_back_is_reported(cli: CommandLine) -> None:
    cli.save("shared")
    cli.save("the same again", "--name", "same")
    assert "the next holdfast cleanup frees its space" in cli("delete", "same", "--yes").out
    (cli.workspace / "noise").write_bytes(os.urandom(5_000_000))
    cli.save("with noise", "--name", "noise")
    (cli.workspace / "noise").unlink()
    first, second, third = cli("delete", "noise", "--yes").out.splitlines()
    assert first.startswith("✓ Deleted ")
    assert second.endswith("MB freed")
    assert "Unsaved changes were saved first" in third


@pytest.mark.requirement("CP-3", "CL-3")
def test_when_nothing_is_left_under_head_that_is_said_and_the_others_are_still_there(
    cli: CommandLine,
) -> None:
    changed = cli.workspace / "changed.txt"
    changed.write_text("old\n")
    cli.save("the first", "--name", "first")
    changed.write_text("new\n")
    left = cli.save("the second")
    cli.json("restore", "first", "--yes")
    cli.json("delete", "first", "--yes")
    record = cli.json("log")[0]
    assert record["is_head"]
    assert record["kind"] == "restore"
    refused = cli("--json", "delete", "HEAD", "--yes")
    assert refused.status == 5
    assert record["id"][:10] in refused.error["hint"]
    cli.json("delete", record["id"], "--yes")

    for words in (("show",), ("diff",), ("restore", "HEAD", "--yes"), ("show", "HEAD~1")):
        refused = cli("--json", *words)
        assert refused.status == 4, words
        assert refused.error["code"] == "unknown_reference"
        assert "were deleted" in refused.error["message"]
        assert "holdfast log" in refused.error["hint"]
    assert "was deleted" in cli("status").out
    assert [one["id"] for one in cli.json("log")] == [left]
    cli.json("restore", left, "--yes")
    assert changed.read_text() == "new\n"
