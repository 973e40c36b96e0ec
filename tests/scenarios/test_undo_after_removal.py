"""Undo after checkpoints were removed: exactly the last step, or nothing and the reason."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.scripted_agent import ScriptedAgent
from tests.support.tree_hash import describe, differences

_REMOVED = "the checkpoint before the last change was deleted"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("# app\n")
    return root


@pytest.fixture
def cli(project: Path) -> CommandLine:
    return CommandLine(project)


def before_call(cli: CommandLine, path: str) -> str:
    """The checkpoint of the state that the call found which wrote a path."""
    reasons = {str(one["id"]): str(one["reasoning"]) for one in cli.json("log", "-n", "0")}
    ids = list(reasons)  # newest first
    last = next(at for at in ids if path in reasons[at])
    return last if reasons[last].startswith("Before") else ids[ids.index(last) + 1]


def refused_untouched(cli: CommandLine, *arguments: str, because: str = _REMOVED) -> None:
    before = describe(cli.workspace)
    for words in (("undo", "--dry-run", *arguments), ("undo", "--yes", *arguments)):
        answer = cli(*words)
        assert answer.status == 4, answer
        assert because in answer.err
        assert "holdfast log" in answer.err or because != _REMOVED
    assert differences(describe(cli.workspace), before) == []


@pytest.mark.requirement("RB-11", "ST-5")
@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_a_removed_checkpoint_never_makes_two_steps_one(
    project: Path, cli: CommandLine, verb: str
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.ask("write three files")
    for name in ("a1", "a2", "x"):
        agent.write(f"src/{name}.py", f"# {name}\n")
    assert cli(verb, before_call(cli, "src/x.py"), "--yes", "--force").status == 0

    refused_untouched(cli)
    refused_untouched(cli, "--turn")
    assert cli.json("status")["last"] is None


@pytest.mark.requirement("RB-11", "ST-5")
def test_a_removed_checkpoint_further_back_leaves_the_later_steps(
    project: Path, cli: CommandLine
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    for name in ("a1", "a2", "x"):
        agent.write(f"src/{name}.py", f"# {name}\n")
    assert cli("purge", before_call(cli, "src/a2.py"), "--yes", "--force").status == 0

    answer = cli("undo", "--yes")

    assert answer.status == 0, answer
    assert differences(describe(project), agent.moments[-1]) == []
    refused_untouched(cli)


@pytest.mark.requirement("RB-11", "SE-13")
def test_a_deleted_session_is_neither_undone_nor_named(project: Path, cli: CommandLine) -> None:
    first, second = ScriptedAgent(project, "first"), ScriptedAgent(project, "second")
    first.start()
    first.write("src/a.py", "# a\n")
    second.start()
    second.write("src/b.py", "# b\n")
    second.write("src/c.py", "# c\n")
    (project / "src" / "d.py").write_text("# by hand\n")
    assert cli("sessions", "delete", "second", "--yes").status == 0

    refused_untouched(cli)
    restored = cli("restore", "HEAD", "--dry-run")
    assert restored.status == 0, restored
    assert "session second" not in restored.out + restored.err


@pytest.mark.requirement("SE-13", "CL-8")
def test_status_names_no_session_after_the_last_one_was_deleted(
    project: Path, cli: CommandLine
) -> None:
    agent = ScriptedAgent(project, "only")
    agent.start()
    agent.write("src/a.py", "# a\n")
    assert cli("sessions", "delete", "only", "--yes").status == 0
    told = cli.json("status")
    assert (told["session_id"], told["sessions"]) == (None, [])
    refused_untouched(cli, because="every checkpoint was deleted")


@pytest.mark.requirement("RB-11", "SE-13")
def test_without_any_checkpoint_left_undo_says_so(cli: CommandLine) -> None:
    cli.save("one", "--session", "only")
    assert cli("sessions", "delete", "only", "--yes").status == 0
    answer = cli("undo", "--yes")
    assert answer.status == 4
    assert "Nothing to undo: every checkpoint was deleted" in answer.err
    assert "holdfast checkpoint" in answer.err


@pytest.mark.requirement("RB-11", "CL-3")
def test_an_undo_that_a_special_file_stops_names_the_command_that_brings_the_rest_back(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shop"
    for name in ("src", "docs"):
        (project / name).mkdir(parents=True)
        (project / name / "file").write_text("work")
    (project / "pyproject.toml").write_text("")
    agent, cli = ScriptedAgent(project), CommandLine(project)
    agent.start()
    agent.run("rm -rf src docs")
    os.mkfifo(project / "src")  # of another program; no checkpoint can hold it
    answer = cli("undo", "--yes", "--json")
    assert answer.status == 5
    assert not (project / "docs").exists()
    command = re.search(r"holdfast (restore \w+ --best-effort)", answer.error["hint"])
    assert command is not None, answer.error
    assert cli(*command[1].split(), "--yes").status == 3
    assert (project / "docs" / "file").read_text() == "work"
    assert (project / "src").is_fifo()
