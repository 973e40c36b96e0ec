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


VERBS = {
    "log": (),
    "show": (),
    "status": (),
    "diff": (),
    "restore": ("HEAD", "--yes"),
    "undo": (),
    "redo": (),
    "attempt": ("why", "--", "true"),
    "annotate": ("HEAD", "text"),
    "search": ("text",),
    "approve": (),
    "reset": ("--yes",),
    "delete": ("HEAD", "--yes"),
    "accept": (),
    "export": ("out.holdfast",),
    "replay": (),
    "why": ("README.md",),
    "stats": (),
    "purge": ("HEAD", "--yes"),
}


@pytest.mark.requirement("CL-3", "CP-8")
@pytest.mark.parametrize("verb", VERBS)
def test_a_session_that_is_not_there_is_an_error_that_names_the_near_ones_and_makes_none(
    cli: CommandLine, verb: str
) -> None:
    cli.save("x", "--session", "refactor")
    cli.save("y", "--session", "zebra")
    answer = cli("--session", "refctor", "--json", verb, *VERBS[verb])
    assert (answer.status, answer.error["code"]) == (4, "not_found")
    assert "no session 'refctor'" in answer.error["message"]
    assert "refactor" in answer.error["hint"]
    assert "zebra" not in answer.error["hint"]
    assert cli.json("status", "--session", "zebra")["sessions"] == ["refactor", "zebra"]


@pytest.mark.requirement("CL-3")
def test_an_attempt_in_a_named_session_makes_neither_a_store_nor_runs(
    cli: CommandLine, holdfast_home: Path
) -> None:
    answer = cli("--session", "typo", "--json", "attempt", "why", "--", "touch", "ran")
    assert answer.status == 4
    assert list(holdfast_home.iterdir()) == []
    assert not (cli.workspace / "ran").exists()


@pytest.mark.requirement("CP-9")
def test_an_attempt_without_a_session_begins_the_current_one(cli: CommandLine) -> None:
    assert cli("attempt", "why", "--", "true").status == 0
    assert len(cli.json("status")["sessions"]) == 1


@pytest.mark.requirement("RB-12")
def test_checkpoints_of_the_library_are_listed_and_found_without_naming_their_session(
    cli: CommandLine,
) -> None:
    with SessionCheckpointer(cli.workspace, "agent-7") as session:
        identifier = session.checkpoint("from the library", name="safe")
    assert [one["id"] for one in cli.json("log")] == [identifier]
    assert cli.json("show", "safe")["id"] == identifier
    assert cli.json("status")["sessions"] == ["agent-7"]
    assert [one["id"] for one in cli.json("log", "--session", "agent-7")] == [identifier]


def test_after_its_session_was_archived_the_command_line_starts_another(cli: CommandLine) -> None:
    name = cli.json("checkpoint", "x")["session_id"]
    with SessionCheckpointer(cli.workspace, name) as session:
        session.archive()
    assert cli.json("checkpoint", "y")["session_id"] not in (name, None)
