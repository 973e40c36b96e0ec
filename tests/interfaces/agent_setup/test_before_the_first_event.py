"""Whether agents are protected, asked before anything was saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("CL-8")


def test_status_right_after_an_install_says_that_the_agent_is_protected(
    cli: CommandLine, project: Path, holdfast_home: Path
) -> None:
    assert cli("install", "claude-code").status == 0
    answer = cli("status")
    assert answer.status == 0, answer
    assert f"workspace {project}\n" in answer.out
    assert "saved     nothing yet\n" in answer.out
    assert "agents    claude-code protected\n" in answer.out
    assert "next      start your agent; its first step saves the project\n" in answer.out
    told = cli.json("status")
    assert (told["store"], told["checkpoints"], told["head"]) == (None, 0, None)
    assert [one["protected"] for one in told["agents"]] == [True]
    cli.save()
    assert set(told) <= set(cli.json("status"))


def test_status_without_an_agent_says_how_to_protect_one_and_makes_no_store(
    cli: CommandLine, holdfast_home: Path
) -> None:
    answer = cli("status")
    assert answer.status == 0, answer
    assert "agents    none protected here\n" in answer.out
    assert "next      protect an agent: holdfast install claude-code" in answer.out
    assert list(holdfast_home.iterdir()) == []


def test_status_names_an_agent_whose_hooks_cannot_run(cli: CommandLine, project: Path) -> None:
    cli.json("install", "claude-code")
    settings = next((project / ".claude").glob("settings*.json"))
    text = settings.read_text()
    start = text.index('"command": "') + len('"command": "')
    name = text[start:].split(" hook ")[0]
    settings.write_text(text.replace(name, "/nowhere/holdfast"))
    answer = cli("status")
    assert answer.status == 0, answer
    assert "claude-code NOT protected: " in answer.out
    assert "next      protect claude-code: holdfast install claude-code --project\n" in answer.out


@pytest.mark.on_disk  # the doctor warns of a store in memory
def test_doctor_notes_that_no_agent_is_protected_and_finds_nothing_wrong(
    cli: CommandLine,
) -> None:
    answer = cli("doctor")
    assert answer.status == 0, answer
    assert "- agents: no agent is protected here\n" in answer.out
    assert "protect one: holdfast install claude-code" in answer.out
    cli.json("install", "claude-code")
    assert "no agent is protected" not in cli("doctor").out


def test_uninstall_names_the_other_place_where_it_is_installed(cli: CommandLine) -> None:
    cli.json("install", "claude-code", "--user")
    answer = cli("uninstall", "claude-code")
    said = answer.out + answer.err
    assert answer.status == 0, answer
    assert "Nothing to do: claude-code is not installed in this project\n" in said
    assert "claude-code is still installed in " in said
    assert "holdfast uninstall claude-code --user" in said
    assert cli("uninstall", "claude-code", "--user").status == 0
    assert "still installed" not in cli("uninstall", "claude-code").out
