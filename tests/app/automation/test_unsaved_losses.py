"""A call that deleted only what no checkpoint has is not passed over by undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.automation.test_first_captured import Agent
from tests.app.automation.test_named_files import snapshot
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

pytestmark = pytest.mark.requirement("RB-11", "RB-14")


@pytest.fixture
def shop(project: Path) -> Path:
    (project / ".gitignore").write_text(".env\n*.db\nnode_modules/\n")
    (project / "shop.db").write_text("rows\n")
    (project / "Makefile").write_text("clean:\n\trm -f *.db .env\n")
    (project / "node_modules").mkdir()
    return project


@pytest.fixture
def agent(shop: Path) -> Agent:
    return Agent(shop)


@pytest.mark.parametrize(
    ("command", "lost"), [("rm -rf .git", ".git"), ("make clean", ".env, shop.db")]
)
def test_undo_does_not_take_back_the_step_before_a_loss(
    shop: Path, cli: CommandLine, agent: Agent, command: str, lost: str
) -> None:
    agent.write("src/app.py", "price = 0\n")
    agent.run(command)
    left = snapshot(shop)
    answer = cli("undo", "--yes")
    assert answer.status == 5
    words = f'"{command}" by claude-code deleted {lost}, which Holdfast does not save'
    assert words in answer.err
    assert snapshot(shop) == left
    assert words in cli.json("status")["last"]["what"]
    status = cli("status").out
    assert words in status
    assert "no saved file changed since HEAD" in status
    assert words in cli("undo", "--dry-run").err
    [hint] = [line for line in answer.err.splitlines() if "holdfast restore" in line]
    reference = hint.partition("holdfast restore ")[2].split()[0]
    cli.json("restore", reference, "--yes")
    assert (shop / "src/app.py").read_text() == "price = 2\n"


def test_a_person_at_a_terminal_is_told_and_asked(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.write("src/app.py", "price = 0\n")
    agent.run("make clean")
    with Screen(shop, "undo") as screen:
        screen.read_until("deleted .env")
        screen.read_until("Undo? [y/N]")
        screen.type("y\n")
        screen.finish()
    assert (shop / "src/app.py").read_text() == "price = 2\n"
    agent.write("notes.txt", "more\n")
    assert cli("undo", "--yes").status == 0  # what was lost before an undo is known


def test_a_call_that_has_no_checkpoint_of_its_own_is_told_by_its_tool(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.run("echo 'price = 0' > src/app.py")  # and saved after it, which serves for the next
    agent.run("make clean")
    answer = cli("undo", "--yes")
    assert answer.status == 5
    assert "by claude-code deleted .env, shop.db, which Holdfast does not save" in answer.err
    assert "deleted .env" in cli.json("status")["last"]["what"]


def test_it_is_told_where_there_is_nothing_else_to_undo(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.run("rm -rf .git")
    answer = cli("undo", "--yes")
    assert answer.status != 0
    assert "deleted .git, which Holdfast does not save" in answer.err
    assert "deleted .git" in cli.json("status")["last"]["what"]


@pytest.mark.parametrize("command", ["true", "rm -rf node_modules"])
def test_a_call_that_lost_nothing_is_passed_over(
    shop: Path, cli: CommandLine, agent: Agent, command: str
) -> None:
    agent.write("src/app.py", "price = 0\n")
    agent.run(command)
    cli.json("undo", "--yes")
    assert (shop / "src/app.py").read_text() == "price = 2\n"
