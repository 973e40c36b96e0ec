"""A turn in which an ignored file was captured for the first time is undone as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.restore.journal import decode_journal, encode_journal
from holdfast.testing.faulty_filesystem import Killed
from tests.app.automation.test_named_files import execute, snapshot
from tests.engine.test_unfinished_restores import DyingFilesystem
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import composed
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("RB-11", "CP-13")


@pytest.fixture
def shop(project: Path) -> Path:
    (project / ".gitignore").write_text(".env\n*.db\nprivate/\n")
    (project / "shop.db").write_text("rows\n")
    (project / "private").mkdir()
    (project / "private" / "key").write_text("key\n")
    return project


class Agent:
    """One that works in a project; each call is announced, carried out and reported."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._calls = 0

    def message(self, prompt: str) -> None:
        self._send({"hook_event_name": "UserPromptSubmit", "prompt": prompt})

    def write(self, path: str, text: str) -> None:
        place = self._project / path
        self._around("Write", {"file_path": str(place), "content": text}, place, text)

    def run(self, command: str) -> None:
        before = self._call("Bash", {"command": command})
        self._send({**before, "hook_event_name": "PreToolUse"})
        execute(self._project, command)
        self._send({**before, "hook_event_name": "PostToolUse", "tool_response": {}})

    def end(self) -> None:
        self._send({"hook_event_name": "Stop"})

    def _around(self, tool: str, given: dict[str, Any], place: Path, text: str) -> None:
        before = self._call(tool, given)
        self._send({**before, "hook_event_name": "PreToolUse"})
        place.write_text(text)
        self._send({**before, "hook_event_name": "PostToolUse", "tool_response": {}})

    def _call(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        self._calls += 1
        return {"tool_name": tool, "tool_input": given, "tool_use_id": f"t{self._calls}"}

    def _send(self, event: dict[str, Any]) -> None:
        known = {"session_id": "s1", "cwd": str(self._project)}
        answer = call_hook("claude-code", {**known, **event}, self._project)
        assert (answer.status, answer.err) == (0, "")


@pytest.fixture
def agent(shop: Path) -> Agent:
    return Agent(shop)


@pytest.mark.parametrize("ends", [True, False])
def test_a_turn_is_undone_with_the_ignored_file_that_it_named_first(
    shop: Path, cli: CommandLine, agent: Agent, ends: bool
) -> None:
    before = snapshot(shop)
    agent.message("make it cheaper")
    agent.write("src/app.py", "price = 0\n")
    agent.write(".env", "KEY=lost\n")
    if ends:
        agent.end()
    after = snapshot(shop)
    assert ".env" in cli("undo", "--turn", "--dry-run").out
    cli.json("undo", "--turn", "--yes")
    assert snapshot(shop) == before
    assert "Nothing to undo" in cli("undo", "--turn", "--yes").err
    cli.json("redo", "--yes")
    assert snapshot(shop) == after
    cli.json("undo", "--yes")
    assert snapshot(shop) == before


@pytest.mark.parametrize(
    "command",
    [
        "rm .env",
        "rm -rf private",
        "echo x > private/key; rm .env",
        "echo x > .env; rm src/app.py",
        "git clean -fdxq",
        "rm -rf * .env",
        "rm shop.db",
    ],
)
def test_a_turn_with_a_command_is_undone_with_the_ignored_files_it_took(
    shop: Path, cli: CommandLine, agent: Agent, command: str
) -> None:
    agent.message("make it cheaper")
    agent.write("src/app.py", "price = 0\n")
    agent.message("now tidy up")
    before = snapshot(shop)
    agent.run(command)
    agent.run("echo more > notes.txt")
    agent.end()
    said = cli.json("undo", "--turn", "--yes")
    assert snapshot(shop) == before
    assert said["missing"] == [], "everything is there again"


def test_a_turn_that_changed_the_ignored_file_alone_is_the_one_that_is_undone(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    agent.message("first")
    agent.write("src/app.py", "price = 0\n")
    agent.message("second")
    before = snapshot(shop)
    agent.write(".env", "KEY=lost\n")
    agent.end()
    cli.json("undo", "--turn", "--yes")
    assert snapshot(shop) == before


def test_an_ignored_file_that_the_turn_made_goes_again(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    before = snapshot(shop)
    agent.message("make it cheaper")
    agent.write("src/app.py", "price = 0\n")
    agent.write("new.db", "made\n")
    agent.write("new.db", "made again\n")
    agent.end()
    cli.json("undo", "--turn", "--yes")
    assert snapshot(shop) == before


def test_the_calls_of_a_turn_are_undone_one_after_the_other(
    shop: Path, cli: CommandLine, agent: Agent
) -> None:
    states = [snapshot(shop)]
    agent.message("make it cheaper")
    for path, text in {"src/app.py": "price = 0\n", ".env": "A\n", "shop.db": "none\n"}.items():
        agent.write(path, text)
        states.append(snapshot(shop))
    agent.run("rm -f .env shop.db src/app.py")
    for state in reversed(states):
        cli.json("undo", "--yes")
        assert snapshot(shop) == state


@pytest.mark.requirement("RB-3", "RL-2")
@pytest.mark.parametrize("backwards", [False, True])
def test_a_killed_undo_of_a_turn_is_finished_or_rolled_back_with_the_ignored_file(
    shop: Path, cli: CommandLine, agent: Agent, backwards: bool
) -> None:
    before = snapshot(shop)
    agent.message("make it cheaper")
    agent.run("for f in src/app.py notes.txt .env shop.db; do echo lost > $f; done")
    agent.end()
    after = snapshot(shop)
    with composed(shop, fs=DyingFilesystem()) as opened, pytest.raises(Killed):
        opened.engine.restore(opened.engine.last_step(turn=True).request)
    if backwards:
        with composed(shop) as opened:
            noted = opened.store.journal.read()
            assert noted is not None
            journal = decode_journal(noted)
            assert journal.tree is not None
            opened.store.journal.write(encode_journal(journal.marked_for_rollback()))
    cli.json("log")
    assert snapshot(shop) == (after if backwards else before)
