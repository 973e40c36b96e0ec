"""A call that deleted only what no checkpoint has is not passed over by undo."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.app.automation.test_first_captured import Agent
from tests.app.automation.test_named_files import snapshot
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.daemon_calls import after, tool_call
from tests.support.hooks_here import call_hook

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
    ("command", "lost"),
    [
        ("rm -rf .git", ".git"),
        ("make clean", ".env, shop.db"),
        ("rm -rf node_modules", "node_modules"),
    ],
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
    assert f"{words} and cannot restore, so nothing was undone" in answer.err
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


def test_a_person_at_a_terminal_is_notified_and_asked(
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


def test_a_call_that_has_no_checkpoint_of_its_own_is_reported_by_its_tool(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.run("echo 'price = 0' > src/app.py")  # and saved after it, which serves for the next
    agent.run("make clean")
    answer = cli("undo", "--yes")
    assert answer.status == 5
    assert "by claude-code deleted .env, shop.db, which Holdfast does not save" in answer.err
    assert "deleted .env" in cli.json("status")["last"]["what"]


def test_it_is_reported_where_there_is_nothing_else_to_undo(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.run("rm -rf .git")
    answer = cli("undo", "--yes")
    assert answer.status != 0
    assert "deleted .git, which Holdfast does not save" in answer.err
    assert "deleted .git" in cli.json("status")["last"]["what"]


def test_a_call_that_lost_nothing_is_passed_over(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.write("src/app.py", "price = 0\n")
    agent.run("true")
    assert cli("undo", "--yes").status == 0
    assert (shop / "src/app.py").read_text() == "price = 2\n"


def test_an_edit_by_hand_before_a_call_that_deleted_a_cache_stays(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.write("src/app.py", "price = 0\n")
    (shop / "notes.txt").write_text("by hand\n")
    agent.message("tidy up")
    agent.run("rm -rf node_modules")
    answer = cli("undo", "--yes")
    assert answer.status == 5
    assert "deleted node_modules" in answer.err
    assert (shop / "notes.txt").read_text() == "by hand\n"
    (shop / "node_modules").mkdir()  # installed again: nothing is missing
    assert cli("undo", "--yes").status == 0


def test_the_error_says_how_to_save_such_files_from_now_on(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    cli.json("config", "set", "include", "*.log")
    agent.run("make clean")
    answer = cli("undo", "--yes")
    assert "to save such files from now on: holdfast config add include .env" in answer.err
    [command] = [line for line in answer.err.splitlines() if "config add" in line]
    cli.json(*shlex.split(command.partition("holdfast ")[2]))
    (shop / ".env").write_text("KEY=again\n")
    agent.run("make clean")
    assert cli("undo", "--yes").status == 0
    assert (shop / ".env").read_text() == "KEY=again\n"


def test_an_undo_that_lacks_files_lists_them_and_ends_with_3(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    (shop / "Makefile").write_text("clean:\n\trm -rf .env notes.txt node_modules\n")
    agent.run("make clean")
    answer = cli("undo", "--yes")
    assert answer.status == 3
    assert (shop / "notes.txt").exists()
    assert "missing, and not in the checkpoint: .env\n" in answer.out
    assert "because tools recreate them: node_modules\n" in answer.out
    assert "to save them from now on: holdfast config add include .env\n" in answer.out


def test_caches_that_a_command_deleted_are_named_and_can_be_saved(
    shop: Path, cli: CommandLine
) -> None:
    def told(use: str) -> str:
        command = tool_call(shop, use, "rm -rf node_modules notes.txt")
        answer = call_hook("claude-code", command, shop)
        shutil.rmtree(shop / "node_modules", ignore_errors=True)
        (shop / "notes.txt").unlink()
        call_hook("claude-code", after(command), shop)
        return answer.out

    (shop / "node_modules" / "left-pad.js").write_text("pad\n")
    words = "Holdfast does not save node_modules, because tools can recreate such directories"
    assert words in told("t1")
    answer = cli("undo", "--yes")
    assert answer.status == 0
    assert "because tools recreate them: node_modules\n" in answer.out
    assert "to save them from now on: holdfast config add include node_modules\n" in answer.out

    (shop / "node_modules").mkdir()
    (shop / "node_modules" / "left-pad.js").write_text("pad\n")
    assert words not in told("t2")  # once a session
    assert cli("undo", "--yes").status == 0
    cli.json("config", "set", "include", "node_modules")
    (shop / "node_modules").mkdir()
    (shop / "node_modules" / "left-pad.js").write_text("pad\n")
    assert words not in told("t3")
    assert cli("undo", "--yes").status == 0
    assert (shop / "node_modules" / "left-pad.js").read_text() == "pad\n"


@pytest.mark.requirement("CP-12")
def test_git_data_of_a_nested_repository_is_reported_before_and_after_it_is_lost(
    shop: Path, cli: CommandLine
) -> None:
    nested = shop / "vendor" / "lib"
    nested.mkdir(parents=True)
    (nested / "lib.c").write_text("int x;\n")
    subprocess.run(["git", "init", "-q"], cwd=nested, check=True)
    command = tool_call(shop, "t1", "rm -rf vendor/lib")
    answer = call_hook("claude-code", command, shop)
    assert "but not vendor/lib/.git. This command may delete it" in answer.out
    assert "vendor/lib/.git: git data" in cli("status", "--skipped").out
    shutil.rmtree(nested)
    call_hook("claude-code", after(command), shop)

    undone = cli("undo", "--yes")
    assert undone.status == 3
    assert "missing, and not in the checkpoint: vendor/lib/.git\n" in undone.out
    assert "vendor/lib is no longer a repository" in undone.out
    assert (nested / "lib.c").read_text() == "int x;\n"
    shutil.rmtree(nested)
    assert cli("restore", "HEAD", "--yes").status == 3
    (shop / "notes.txt").write_text("other\n")
    assert cli("restore", "HEAD", "--yes").status == 0
