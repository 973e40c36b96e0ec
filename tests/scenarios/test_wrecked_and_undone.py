"""A project is wrecked in an agent's session, and a person at a terminal types one command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine, command
from tests.support.forked_commands import call_hook
from tests.support.tree_hash import Node, describe

pytestmark = pytest.mark.requirement("RB-11")


class Agent:
    """Claude Code as its hooks see it, with default settings."""

    def __init__(self, workspace: Path, session: str) -> None:
        self.workspace = workspace
        self.session = session
        self._calls = 0

    def event(self, name: str, **more: Any) -> str:
        event = {
            "session_id": self.session,
            "cwd": str(self.workspace),
            "transcript_path": "/nowhere",
            "hook_event_name": name,
            **more,
        }
        answer = call_hook("claude-code", event, self.workspace)
        assert answer.status == 0, answer
        return answer.out

    def start(self) -> None:
        self.event("SessionStart", source="startup")

    def says(self, prompt: str) -> str:
        return self.event("UserPromptSubmit", prompt=prompt)

    def runs(self, command: str, *, told: bool = True) -> None:
        """A tool call; the agent may be killed before it tells that the call has ended."""
        self._calls += 1
        call = {
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"{self.session}-{self._calls}",
        }
        self.event("PreToolUse", **call)
        subprocess.run(["sh", "-c", command], cwd=self.workspace, check=True)
        if told:
            self.event("PostToolUse", **call, tool_response={"stdout": "", "stderr": ""})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "app.py").write_text("price = 1\n")
    (root / "src" / "deep" / "data.bin").write_bytes(bytes(range(256)))
    (root / "README.md").write_text("a shop\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


@pytest.fixture
def cli(project: Path) -> CommandLine:
    return CommandLine(project)


def content(root: Path) -> dict[bytes, Node]:
    """Everything but what git and Holdfast keep for themselves."""
    own = (b".git", b".holdfast")
    return {path: node for path, node in describe(root).items() if not path.startswith(own)}


def answered(cli: CommandLine, *arguments: str) -> str:
    """A command that a person types has to succeed."""
    answer = cli.process(*arguments)
    assert answer.status == 0, answer
    return answer.out


@pytest.mark.parametrize("told", [True, False])
def test_the_agent_deletes_src_and_undo_brings_it_back(
    cli: CommandLine, project: Path, told: bool
) -> None:
    before = content(project)
    agent = Agent(project, "wrecker")
    agent.start()
    agent.says("clean up")
    agent.runs("echo tidy > notes.txt")
    tidy = content(project)
    agent.runs("rm -rf src", told=told)
    assert not (project / "src").exists()
    shown = answered(cli, "undo", "--dry-run")
    assert 'the Bash call "rm -rf src" by claude-code' in shown
    assert "2 files created" in shown
    answered(cli, "undo", "--yes")
    assert content(project) == tidy
    answered(cli, "undo", "--yes")
    assert content(project) == before
    answered(cli, "redo", "--yes")
    assert content(project) == tidy
    answered(cli, "redo", "--yes")
    assert not (project / "src").exists()
    assert cli.process("redo", "--yes").status == 4


def test_the_agent_hears_of_the_undo_and_so_does_another(cli: CommandLine, project: Path) -> None:
    other = Agent(project, "neighbour")
    other.start()
    agent = Agent(project, "wrecker")
    agent.start()
    agent.says("clean up")
    agent.runs("rm -rf src")
    answered(cli, "undo", "--yes")
    heard = agent.says("go on")
    assert "rm -rf src" in heard
    assert "src/app.py" in heard
    assert "src/app.py" in other.says("and you?")


@pytest.mark.requirement("RB-12")
@pytest.mark.parametrize("words", [("undo",), ("restore", "HEAD"), ("restore", "safe")])
def test_wrecked_in_another_session_each_way_back_works(
    cli: CommandLine, project: Path, words: tuple[str, ...]
) -> None:
    good = content(project)
    first = Agent(project, "monday")
    first.start()
    first.says("look around")
    cli.save("it works", "--name", "safe")
    first.event("SessionEnd", reason="exit")
    second = Agent(project, "tuesday")
    second.start()
    second.says("make it better")
    second.runs("rm -rf src README.md", told=False)
    answered(cli, *words, "--yes")
    assert content(project) == good
    log = cli.json("log")
    (head,) = [one["id"] for one in log if one["is_head"]]
    assert cli.json("show", "HEAD")["id"] == head


def test_a_turn_is_undone_as_a_whole_and_redone_as_a_whole(cli: CommandLine, project: Path) -> None:
    agent = Agent(project, "s")
    agent.start()
    agent.says("the first thing")
    agent.runs("echo 1 > one.txt")
    first = content(project)
    agent.says("the second thing")
    agent.runs("echo 2 > two.txt")
    agent.runs("rm -rf src")
    agent.runs("echo 3 > one.txt")
    wrecked = content(project)
    done = cli.json("undo", "--turn", "--yes")
    assert done["undone"]["type"] == "turn"
    assert "the second thing" in done["undone"]["what"]
    assert content(project) == first
    cli.json("redo", "--yes")
    assert content(project) == wrecked
    cli.json("undo", "--turn", "--yes")
    cli.json("undo", "--turn", "--yes")
    assert not (project / "one.txt").exists()
    assert (project / "src" / "app.py").exists()


def test_edits_of_a_person_after_the_last_checkpoint_are_the_last_thing(
    cli: CommandLine, project: Path
) -> None:
    agent = Agent(project, "s")
    agent.start()
    agent.runs("echo 1 > one.txt")
    agent.event("SessionEnd", reason="exit")
    cli.save("mine")
    (project / "src" / "app.py").write_text("oops\n")
    shutil.rmtree(project / "src" / "deep")
    done = cli.json("undo", "--yes")
    assert done["undone"]["type"] == "edits"
    assert (project / "src" / "app.py").read_text() == "price = 1\n"
    assert (project / "one.txt").exists()
    done = cli.json("undo", "--yes")
    assert done["undone"]["type"] == "tool_call"
    assert not (project / "one.txt").exists()


def test_a_scripted_undo_after_a_restore_undoes_that_restore_also_when_it_changed_nothing(
    cli: CommandLine, project: Path
) -> None:
    cli.save("one")
    (project / "README.md").write_text("two\n")
    cli.save("two", "--name", "two")
    cli.json("restore", "two", "--yes")
    done = cli.json("undo", "--yes")
    assert done["undone"]["type"] == "restore"
    assert done["operations"] == []
    assert (project / "README.md").read_text() == "two\n"
    cli.json("undo", "--yes")
    assert (project / "README.md").read_text() == "a shop\n"


@pytest.mark.requirement("RB-15")
def test_undoing_a_restore_keeps_what_an_agent_saved_since_as_a_line_of_its_own(
    cli: CommandLine, project: Path
) -> None:
    cli.save("one", "--name", "one")
    (project / "README.md").write_text("two\n")
    cli.save("two")
    cli.json("restore", "one", "--yes")
    agent = Agent(project, "s")
    agent.start()
    agent.runs("echo newer > newer.txt")
    newer = cli.json("log")[0]
    assert newer["session_id"] == "s"
    for _ in range(2):
        cli.json("undo", "--yes")
    assert (project / "README.md").read_text() == "two\n"
    assert not (project / "newer.txt").exists()
    assert newer["id"] in [one["id"] for one in cli.json("log")]
    cli.json("restore", newer["id"], "--yes")
    assert (project / "newer.txt").read_text() == "newer\n"


@pytest.mark.requirement("RB-15", "RB-1")
def test_before_a_restore_it_is_said_which_agent_is_in_the_middle_of_a_tool_call(
    cli: CommandLine, project: Path, tmp_path: Path
) -> None:
    """The agent is a process of its own, in the middle of a call that has written one file."""
    cli.save("good", "--name", "good")
    event = {
        "session_id": "busy",
        "cwd": str(project),
        "transcript_path": "/nowhere",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make all"},
        "tool_use_id": "1",
    }
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import subprocess, sys\n"
        f"subprocess.run({command('hook', 'claude-code')!r}, check=True,\n"
        f"    cwd={str(project)!r}, input={json.dumps(event)!r}.encode())\n"
        f"open({str(project / 'half.txt')!r}, 'w').write('half')\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    (project / "README.md").write_text("changed before it\n")
    with subprocess.Popen(
        [sys.executable, str(agent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        while b"ready" not in running.stdout.readline():
            assert running.poll() is None
        planned = cli.json("restore", "good", "--dry-run")["warnings"]
        (said,) = [one for one in planned if "tool call" in one]
        assert "claude-code (session busy)" in said
        assert "Bash" in said
        assert "half.txt" in said
        assert "README.md" not in said
        answer = cli("restore", "good", "--yes")
        assert answer.status == 0
        assert "claude-code (session busy) is in the middle of a tool call" in answer.err
        assert not (project / "half.txt").exists()
        cli.json("undo", "--yes")
        assert (project / "half.txt").read_text() == "half"
        running.kill()
    assert not [
        one for one in cli.json("restore", "good", "--dry-run")["warnings"] if "call" in one
    ]


@pytest.mark.requirement("RB-2", "CP-13")
def test_undo_returns_from_a_state_that_left_out_a_file_which_is_saved_by_now(
    cli: CommandLine, project: Path
) -> None:
    (project / ".gitignore").write_text(".env\n")
    (project / ".env").write_text("KEY=1\n")
    agent = Agent(project, "one")
    agent.start()
    began = content(project)
    agent.runs("echo 'price = 2' > src/app.py")
    agent.runs("echo KEY=2 > .env")
    worked = content(project)
    answered(cli, "restore", "initial", "--yes")
    restored = content(project)
    assert restored[b"src/app.py"] == began[b"src/app.py"]
    assert restored[b".env"] == worked[b".env"]  # that checkpoint left it out, so it is kept
    assert "restore" in cli.json("status")["last"]["what"]
    assert "the restore to" in answered(cli, "undo", "--yes")
    assert content(project) == worked
    answered(cli, "redo", "--yes")
    assert content(project) == restored
    answered(cli, "undo", "--yes")
    assert content(project) == worked
    agent.runs("true")  # a checkpoint after the restore changes nothing about what was last
    answered(cli, "restore", "initial", "--yes")
    agent.runs("true")
    answered(cli, "undo", "--yes")
    assert content(project) == worked
    for _ in range(2):
        answered(cli, "undo", "--yes")
    assert content(project) == {**began, b".env": content(project)[b".env"]}
    assert "Nothing to undo" in cli.process("undo", "--yes").err
