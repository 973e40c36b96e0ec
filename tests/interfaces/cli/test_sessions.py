"""Which session a command works on, and what commands say where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "verb", ["log", "show", "status", "diff", "restore", "undo", "stats", "check"]
)
def test_a_directory_without_checkpoints_is_told_so_and_gets_no_store(
    cli: CommandLine, holdfast_home: Path, verb: str
) -> None:
    answer = cli(verb, "--json")
    assert answer.status == 4
    assert "has no checkpoints yet" in answer.error["message"]
    assert list(holdfast_home.iterdir()) == []
    assert not (cli.workspace / ".holdfast").exists()


@pytest.mark.requirement("CL-3")
def test_an_unknown_session_is_not_found_and_the_known_ones_are_named(cli: CommandLine) -> None:
    cli.save("x", "--session", "refactor")
    answer = cli("log", "--session", "refctor", "--json")
    assert answer.status == 4
    assert "refactor" in answer.error["hint"]


def test_checkpoints_of_the_library_are_reached_by_naming_their_session(cli: CommandLine) -> None:
    with SessionCheckpointer(cli.workspace, "agent-7") as session:
        identifier = session.checkpoint("from the library")
    answer = cli("log", "--json")
    assert answer.status == 4
    assert "agent-7" in answer.error["hint"]
    assert cli.json("status")["sessions"] == ["agent-7"]
    assert [one["id"] for one in cli.json("log", "--session", "agent-7")] == [identifier]


def test_after_its_session_was_archived_the_command_line_starts_another(cli: CommandLine) -> None:
    name = cli.json("checkpoint", "x")["session_id"]
    with SessionCheckpointer(cli.workspace, name) as session:
        session.archive()
    assert cli.json("checkpoint", "y")["session_id"] not in (name, None)
