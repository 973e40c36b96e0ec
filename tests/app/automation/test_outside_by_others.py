"""Undo leaves a file outside alone if only its user edited it: a call that named it is not its
author. If a call changed it and its user edited it again, undo restores it and names the edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.automation.test_first_captured import Agent
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure

pytestmark = pytest.mark.requirement("RB-4", "RB-11", "CP-13")

FIRST, BY_HAND = "true # first\n", "true # by hand\n"


@pytest.fixture
def script(project: Path) -> Path:
    """A script of the user's beside the project."""
    file = project.parent / "tools" / "run"
    file.parent.mkdir()
    file.write_text(FIRST)
    return file


@pytest.fixture
def agent(project: Path) -> Agent:
    return Agent(project)


@pytest.mark.parametrize("command", ["sh {}", "cp {} src/copied.py", "grep -c x {} || true"])
@pytest.mark.parametrize("ends", [True, False])
def test_an_edit_by_hand_after_a_call_that_changed_nothing_outside(
    script: Path, cli: CommandLine, agent: Agent, command: str, ends: bool
) -> None:
    agent.message("run it")
    agent.run(command.format(script))
    if ends:
        agent.end()
    script.write_text(BY_HAND)
    assert f"write {script}" not in cli("undo", "--dry-run").out
    cli("undo", "--yes")
    assert script.read_text() == BY_HAND
    cli("undo", "--turn", "--yes")
    assert script.read_text() == BY_HAND


def test_an_edit_by_hand_between_two_calls(
    project: Path, script: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.message("run it")
    agent.run(f"sh {script}")
    script.write_text(BY_HAND)
    agent.run(f"sh {script}")
    agent.write("src/app.py", "price = 0\n")
    cli.json("undo", "--yes")
    assert (project / "src/app.py").read_text() == "price = 2\n"
    cli("undo", "--yes")
    assert script.read_text() == BY_HAND


def test_the_call_that_changed_it_is_undone(script: Path, cli: CommandLine, agent: Agent) -> None:
    agent.run(f"sh {script}")
    agent.run(f"echo ruined > {script}")
    agent.end()
    assert f"write {script}" in cli("undo", "--dry-run").out
    cli.json("undo", "--yes")
    assert script.read_text() == FIRST
    cli.json("redo", "--yes")
    assert script.read_text() == "ruined\n"


def test_of_two_files_only_the_one_that_the_call_changed(
    script: Path, cli: CommandLine, agent: Agent
) -> None:
    other = script.with_name("other")
    other.write_text("kept\n")
    agent.run(f"sh {script}; echo ruined > {other}")
    script.write_text(BY_HAND)
    cli.json("undo", "--yes")
    assert other.read_text() == "kept\n"
    assert script.read_text() == BY_HAND


@pytest.mark.requirement("BX-7")
def test_a_directory_that_the_call_made_stays_if_others_have_put_files_into_it(
    project: Path, cli: CommandLine, agent: Agent
) -> None:
    made = project.parent / "made"
    agent.run(f"mkdir -p {made}/inner && cp src/app.py {made}/inner/copy && rm -rf src")
    agent.end()
    (made / "by another program").write_text("kept\n")
    assert f"not restored: {made}: it has other files now" in cli("undo", "--dry-run").err
    done = cli.json("undo", "--yes")
    assert done["undone"]["not_restored"] == [f"{made}: it has other files now"]
    assert (project / "src/app.py").is_file()
    assert [one.name for one in made.iterdir()] == ["by another program"]
    cli.json("redo", "--yes")
    assert (made / "inner/copy").is_file()
    assert not (project / "src").exists()


def test_the_undo_of_a_restore_leaves_alone_what_others_put_into_a_directory(
    project: Path, cli: CommandLine, agent: Agent
) -> None:
    made = project.parent / "made"
    agent.run(f"mkdir {made} && echo 1 > {made}/one && rm -rf src")
    agent.end()
    after = cli.json("checkpoint", "after the call")["id"]
    cli.json("undo", "--yes")
    cli.json("restore", after, "--external", "--yes")
    assert (made / "one").is_file()
    (made / "by another program").write_text("kept\n")
    warning = f"not restored: {made}: it has other files now"
    assert warning in cli.json("undo", "--dry-run")["warnings"]
    assert warning in cli.json("undo", "--yes")["warnings"]
    assert (project / "src/app.py").is_file()
    assert [one.name for one in made.iterdir()] == ["by another program"]


def test_a_directory_that_stays_does_not_keep_undo_from_the_change_before(
    project: Path, cli: CommandLine, agent: Agent
) -> None:
    made = project.parent / "made"
    agent.write("src/app.py", "price = 0\n")
    agent.run(f"mkdir {made} && echo 1 > {made}/one")
    agent.run("ls")
    (made / "by another program").write_text("kept\n")
    cli.json("undo", "--yes")
    assert [one.name for one in made.iterdir()] == ["by another program"]
    cli.json("undo", "--yes")
    assert (project / "src/app.py").read_text() == "price = 2\n"


def test_a_file_that_became_a_directory_with_files_of_others_stays_and_the_rest_is_undone(
    project: Path, cli: CommandLine, agent: Agent, script: Path
) -> None:
    agent.run(f"rm {script} && mkdir {script} && echo 1 > {script}/one; echo 0 > src/app.py")
    agent.run("ls")
    (script / "by another program").write_text("kept\n")
    done = cli.json("undo", "--yes")
    assert done["undone"]["not_restored"] == [f"{script}: it has other files now"]
    assert (project / "src/app.py").read_text() == "price = 2\n"
    assert [one.name for one in script.iterdir()] == ["by another program"]


def test_where_nothing_was_saved_after_the_call_nobody_knows(
    project: Path, script: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.write("src/app.py", "price = 0\n")
    configure(project, auto_after_shell="off", auto_turn_end="off")
    agent.run(f"sh {script}; echo 'price = 1' > src/app.py")
    script.write_text(BY_HAND)
    answer = cli("undo", "--yes")
    words = f"not restored: write {script}: it is not known who changed it since the call"
    assert words in answer.err
    assert (project / "src/app.py").read_text() == "price = 0\n"
    assert script.read_text() == BY_HAND


def later_edit(line: str, command: str = "redo") -> str:
    return f"{line}: this replaces a later edit, which is saved first; {command} restores it"


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("turn", [False, True])
def test_an_edit_by_hand_after_the_call_is_named_saved_and_comes_back_with_redo(
    project: Path, script: Path, cli: CommandLine, agent: Agent, saved: bool, turn: bool
) -> None:
    other = script.with_name("other")
    other.write_text("kept\n")
    agent.message("ruin it")
    agent.run(f"echo ruined > {script}; echo ruined > {other}")
    agent.end()
    script.write_text(BY_HAND)
    options = ("--turn",) if turn else ()
    if saved:
        agent.run("true > src/more.py")
        agent.end()
        if not turn:
            cli.json("undo", "--yes")
    said = later_edit(f"write {script}")
    assert said in cli("undo", "--dry-run", *options).out
    assert said in cli.json("undo", "--dry-run", *options)["remarks"]
    done = cli.json("undo", "--yes", *options)
    assert said in done["warnings"]
    assert (script.read_text(), other.read_text()) == (FIRST, "kept\n")
    cli.json("redo", "--yes")
    assert (script.read_text(), other.read_text()) == (BY_HAND, "ruined\n")


def test_an_edit_by_hand_after_a_restore_is_named_by_its_undo_and_one_after_that_by_redo(
    script: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.run(f"echo ruined > {script}")
    agent.end()
    cli.json("undo", "--yes")
    script.write_text(BY_HAND)
    said = later_edit(f"write {script}", "undo")
    assert said in cli("redo", "--dry-run").out
    assert said in cli.json("redo", "--yes")["warnings"]
    assert script.read_text() == "ruined\n"
    script.write_text("true # by hand again\n")
    said = later_edit(f"write {script}")
    assert said in cli("undo", "--dry-run").out
    assert said in cli.json("undo", "--yes")["warnings"]
    assert script.read_text() == FIRST
    cli.json("redo", "--yes")
    assert script.read_text() == "true # by hand again\n"


def test_what_only_calls_changed_is_no_later_edit(
    script: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.message("ruin it")
    for text in ("ruined", "ruined again"):
        agent.run(f"echo {text} > {script}")
        agent.end()
    assert "later edit" not in cli("undo", "--dry-run").out
    assert "later edit" not in cli("undo", "--turn", "--dry-run").out
    cli.json("undo", "--turn", "--yes")
    assert "later edit" not in cli("redo", "--dry-run").out
    assert script.read_text() == FIRST
