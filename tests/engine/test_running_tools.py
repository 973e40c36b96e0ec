"""A checkpoint and the tools of agents: who waits for which of them, and who does not."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.agent_tools import LocalRunningTools
from holdfast.adapters.local.layout import RUNNING_TOOLS
from holdfast.adapters.local.system import agent_above, own_line
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.agent_events import AgentEvent, EventKind, ToolKind
from holdfast.interfaces.hooks.runtime_files import event_handler
from holdfast.interfaces.tools.save import Created
from holdfast.ports.agent_tools import LONGEST_CALL_NS, RunningTool
from holdfast.tools import ToolHandlers
from tests.behind_the_api import engine_of
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure

pytestmark = pytest.mark.requirement("SE-12")

_AGENT = """
import subprocess, sys
hook = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(hook.pid, flush=True)
sys.stdin.read()
hook.kill()
hook.wait()
"""


class Agent:
    """A process that has a hook's process below it."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _AGENT]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.hook = int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent()
    yield made
    if made.process.poll() is None:
        made.end()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "file").write_text("0")
    configure(workspace, wait_for_edits=0.05)
    return workspace


def _send(workspace: Path, agent: Agent, kind: EventKind, use: str | None = "use-1") -> bool:
    """Whether the checkpoint that an event led to is partial."""
    event = AgentEvent(
        "claude-code",
        "x",
        kind,
        session="talk",
        tool="Bash",
        tool_kind=ToolKind.SHELL,
        command="make",
        tool_use_id=use,
        cwd=str(workspace),
        process=agent.hook,
    )
    with open_workspace(workspace, create=True) as opened:
        reply = event_handler(os.environ).handle_in(opened, event)
        for session in opened.engine.vault.catalog.sessions():
            found = opened.engine.vault.catalog.checkpoint(session.id, str(reply.checkpoint))
            if found is not None:
                return found.partial
    return False


def _files(workspace: Path) -> list[str]:
    with open_workspace(workspace, create=False) as opened:
        directory = opened.store.directory / RUNNING_TOOLS
        return sorted(os.listdir(directory)) if directory.exists() else []


def test_a_checkpoint_during_a_tool_waits_and_is_then_marked_partial(
    workspace: Path, agent: Agent
) -> None:
    _send(workspace, agent, EventKind.BEFORE_TOOL)
    with SessionCheckpointer(workspace, "mine") as session:
        outcome = session.save_checkpoint("while it runs")
        assert outcome.checkpoint.partial
        (failure,) = outcome.failures
        assert "a tool of an agent was still running: Bash" in failure.detail
        (warning,) = outcome.warnings
        assert "a tool of an agent was still running: Bash; the checkpoint is partial" in warning
        answer = ToolHandlers(session).call("checkpoint_create", {"reasoning": "by a tool"})
        assert "Warning: a tool of an agent was still running: Bash" in answer.output
        assert isinstance(answer.data, Created)
        assert answer.data.checkpoint.partial
        assert "the checkpoint is partial" in answer.data.warnings[0]
    cli = CommandLine(workspace)
    answered = cli("checkpoint", "while it runs", "--json")
    assert answered.status == 3
    assert "the checkpoint is partial" in json.loads(answered.out)["warnings"][0]
    assert "a tool of an agent was still running: Bash" in cli("checkpoint", "again").err
    _send(workspace, agent, EventKind.AFTER_TOOL)
    assert _files(workspace) == []
    with SessionCheckpointer(workspace, "mine") as session:
        assert not session.save_checkpoint("afterwards").checkpoint.partial


def test_a_checkpoint_goes_on_as_soon_as_the_tool_has_ended(
    workspace: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    _send(workspace, agent, EventKind.BEFORE_TOOL)
    configure(workspace, wait_for_edits=3600)
    looked = threading.Event()
    asked = LocalRunningTools.of_others

    def noted(self: LocalRunningTools, now_ns: int) -> list[RunningTool]:
        found = asked(self, now_ns)
        looked.set()
        return found

    monkeypatch.setattr(LocalRunningTools, "of_others", noted)
    partial: list[bool] = []

    def save() -> None:
        with SessionCheckpointer(workspace, "mine") as session:
            partial.append(session.save_checkpoint("waits").checkpoint.partial)

    waiting = threading.Thread(target=save)
    waiting.start()
    assert looked.wait(60)
    # The lock is free meanwhile: no process that must report the end is kept from it.
    _send(workspace, agent, EventKind.AFTER_TOOL)
    waiting.join(60)
    assert partial == [False]


def test_a_tool_whose_end_is_never_reported_is_waited_for_once(
    workspace: Path, agent: Agent
) -> None:
    _send(workspace, agent, EventKind.BEFORE_TOOL)
    with SessionCheckpointer(workspace, "mine") as session:
        assert session.save_checkpoint("waits in vain").checkpoint.partial
    (name,) = _files(workspace)
    assert name.endswith(".waited")
    configure(workspace, wait_for_edits=3600)
    with SessionCheckpointer(workspace, "mine") as session:
        assert session.save_checkpoint("does not wait again").checkpoint.partial


def test_a_tool_of_an_agent_that_is_gone_or_too_old_does_not_count(
    workspace: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(workspace, wait_for_edits=3600)
    _send(workspace, agent, EventKind.BEFORE_TOOL)
    with SessionCheckpointer(workspace, "mine") as session:
        tools = engine_of(session).vault.running_tools
        now_ns = engine_of(session).vault.clock.now_ns()
        assert len(tools.of_others(now_ns)) == 1
        agent.end()
        assert not session.save_checkpoint("the dead do not count").checkpoint.partial
        assert _files(workspace) == []
        other = Agent()
        try:
            _send(workspace, other, EventKind.BEFORE_TOOL)
            later_ns = engine_of(session).vault.clock.now_ns() + LONGEST_CALL_NS
            assert tools.of_others(later_ns) == []
        finally:
            other.end()


@pytest.mark.requirement("HK-3")
@pytest.mark.parametrize("use", ["use-2", None])
def test_no_hook_waits_for_a_tool_of_its_own_agent_or_of_another(
    workspace: Path, agent: Agent, use: str | None
) -> None:
    configure(workspace, wait_for_edits=3600)
    _send(workspace, agent, EventKind.BEFORE_TOOL)
    (workspace / "file").write_text("1")
    assert not _send(workspace, agent, EventKind.BEFORE_TOOL, use)
    other = Agent()
    try:
        (workspace / "file").write_text("2")
        assert not _send(workspace, other, EventKind.BEFORE_TOOL, "use-3")
    finally:
        other.end()


@pytest.mark.parametrize("kind", [EventKind.TURN_END, EventKind.SESSION_END, EventKind.MESSAGE])
def test_when_a_turn_begins_or_ends_no_tool_is_left(
    workspace: Path, agent: Agent, kind: EventKind
) -> None:
    _send(workspace, agent, EventKind.BEFORE_TOOL)
    _send(workspace, agent, EventKind.BEFORE_TOOL, "use-2")
    assert len(_files(workspace)) == 2
    _send(workspace, agent, kind)
    assert _files(workspace) == []


def test_what_an_agent_runs_does_not_wait_for_its_tool(workspace: Path) -> None:
    configure(workspace, wait_for_edits=3600)
    with SessionCheckpointer(workspace, "mine") as session:
        session.checkpoint("begin")
        owner = agent_above(os.getpid())
        assert owner in own_line()
        tools = engine_of(session).vault.running_tools
        now_ns = engine_of(session).vault.clock.now_ns()
        tools.begin("0" * 32, owner=str(owner), session="s", tool="Bash", now_ns=now_ns)
        assert not session.save_checkpoint("from within the tool").checkpoint.partial


@pytest.mark.requirement("HK-6", "SE-13")
def test_a_process_of_another_user_is_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the `su` above an agent that is a shell script: its session would end at once."""
    assert agent_above(os.getpid()) is not None

    def refused(number: int, signal: int) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(os, "kill", refused)
    assert agent_above(os.getpid()) is None


def test_files_that_make_no_sense_are_passed_over(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "mine") as session:
        session.checkpoint("begin")
        directory = engine_of(session).vault.files.directory / RUNNING_TOOLS
        directory.mkdir(mode=0o700)
        (directory / "empty").write_bytes(b"")
        (directory / "binary").write_bytes(b"\xff\n\xff\n\xff\n\xff")
        (directory / "odd").write_text("x\ny\nz\nw")
        (directory / "link").symlink_to("/dev/zero")
        (directory / "directory").mkdir()
        os.mkfifo(directory / "fifo")
        assert not session.save_checkpoint("all the same").checkpoint.partial
