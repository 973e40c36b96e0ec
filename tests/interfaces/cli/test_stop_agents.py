"""`--stop-agents`: agents end before a restore, an undo or a reset, and no other process does."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer, start_session
from holdfast.adapters.local.system import agent_above, own_identity
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.engine.sessions.active_agents import AGENT_PROCESS
from holdfast.tools import ToolHandlers
from tests.interfaces.cli.command_line import CommandLine

AGENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import os; print(os.getpid(), flush=True); input()"])
"""
Program = subprocess.Popen[bytes]


@pytest.fixture
def agent() -> Iterator[Program]:
    """A program with a process below it, from which hooks would come."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", AGENT], stdin=pipe, stdout=pipe) as program:
        yield program
        program.kill()
        program.communicate()


def identity_of(program: Program) -> str:
    assert program.stdout is not None
    found = agent_above(int(program.stdout.readline()))
    assert found is not None
    return found


def note_session(workspace: Path, process: str | None) -> None:
    start_session(workspace, "theirs", agent="codex").close()
    with open_workspace(workspace, create=False) as opened:
        if process is not None:
            story = opened.engine.vault.story
            story.set_fact(SessionId("theirs"), AGENT_PROCESS, process, expected=None)


@pytest.mark.requirement("AG-1")
def test_an_active_agent_ends_before_the_restore(cli: CommandLine, agent: Program) -> None:
    note_session(cli.workspace, identity_of(agent))
    saved = cli.save("before")
    (cli.workspace / "README.md").write_text("changed\n")
    active = {"session_id": "theirs", "agent": "codex", "process": agent.pid}
    planned = cli.json("restore", saved, "--dry-run", "--stop-agents")
    assert planned["agents"] == [active | {"status": "active"}]
    said = cli("restore", saved, "--dry-run", "--stop-agents").out
    assert f"would ask codex to end (process {agent.pid})\n" in said
    assert agent.poll() is None
    done = cli.json("restore", saved, "--yes", "--stop-agents")
    assert done["agents"] == [active | {"status": "ended"}]
    assert agent.wait() == -signal.SIGTERM
    assert (cli.workspace / "README.md").read_text() != "changed\n"
    assert cli.json("restore", saved, "--yes", "--stop-agents")["agents"] == []


@pytest.mark.requirement("AG-1")
def test_a_process_that_only_has_the_number_is_left_alone(cli: CommandLine, agent: Program) -> None:
    identity_of(agent)
    note_session(cli.workspace, f"{agent.pid} began at another time")
    saved = cli.save("before")
    assert cli.json("restore", saved, "--yes", "--stop-agents")["agents"] == []
    assert agent.poll() is None


@pytest.mark.requirement("AG-1")
@pytest.mark.parametrize("known", [False, True])
def test_an_agent_without_a_process_or_above_the_command_is_not_asked(
    cli: CommandLine, known: bool
) -> None:
    note_session(cli.workspace, own_identity() if known else None)
    saved = cli.save("before")
    (cli.workspace / "README.md").write_text("changed\n")
    answer = cli("restore", saved, "--yes", "--stop-agents")
    assert answer.status == 0
    assert "codex (theirs) was not asked to end" in answer.err
    assert "agents" not in cli.json("restore", saved, "--yes")


@pytest.mark.requirement("AG-1")
@pytest.mark.parametrize("command", ["undo", "redo", "reset"])
def test_undo_redo_and_reset_ask_them_too(cli: CommandLine, agent: Program, command: str) -> None:
    first = cli.save("before")
    (cli.workspace / "README.md").write_text("changed\n")
    cli.save("after")
    if command == "redo":
        cli.json("undo", "--yes")
    note_session(cli.workspace, identity_of(agent))
    active = {"session_id": "theirs", "agent": "codex", "process": agent.pid}
    planned = cli.json(command, "--dry-run", "--stop-agents", *own(cli, first, command))
    assert planned["agents"] == [active | {"status": "active"}]
    assert agent.poll() is None
    done = cli.json(command, "--yes", "--stop-agents", *own(cli, first, command))
    assert done["agents"] == [active | {"status": "ended"}]
    assert agent.wait() == -signal.SIGTERM
    assert ((cli.workspace / "README.md").read_text() == "changed\n") == (command == "redo")


def own(cli: CommandLine, checkpoint: str, command: str) -> list[str]:
    """A reset is about one session: the one that these checkpoints are in."""
    session = cli.json("show", checkpoint)["session_id"]
    return ["--session", session] if command == "reset" else []


@pytest.mark.requirement("AG-1", "MC-1")
def test_the_restore_tool_asks_them_after_its_preview_was_confirmed(
    cli: CommandLine, agent: Program
) -> None:
    note_session(cli.workspace, identity_of(agent))
    readme = cli.workspace / "README.md"
    with SessionCheckpointer(cli.workspace, "tools") as session:
        tools = ToolHandlers(session)
        saved = session.checkpoint("before")
        readme.write_text("changed\n")
        call = {"checkpoint_id": saved, "stop_agents": True}
        preview = tools.call("checkpoint_restore", call)
        assert "asks these agents to end" in preview.output
        shown: Any = preview.data
        assert shown.agents == ["codex (theirs): active"]
        assert agent.poll() is None
        done = tools.call("checkpoint_restore", {"confirm_token": shown.confirm_token})
        result: Any = done.data
        assert result.agents == ["codex (theirs): ended"]
        assert agent.wait() == -signal.SIGTERM
        assert readme.read_text() != "changed\n"
        readme.write_text("changed\n")
        without = tools.call("checkpoint_restore", {"checkpoint_id": saved})
        unasked: Any = without.data
        assert unasked.agents == []
