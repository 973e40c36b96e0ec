"""A merge by an agent, or by a person beside it, is kept as one, with a daemon and without."""

from __future__ import annotations

import os
import shutil
import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from holdfast.api.automation import open_watcher, watch_workspace
from holdfast.app.automation.watched_workspace import WatchedWorkspace
from holdfast.domain.agent_events import AgentEvent, EventKind, ToolKind
from holdfast.domain.ids import SessionId
from holdfast.domain.triggers import TriggerRules
from holdfast.interfaces.hooks.runtime_files import event_handler
from tests.components.git.repositories import commit, git
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import after, logged_checkpoints, send, tool_call
from tests.support.daemons import daemon_here

pytestmark = pytest.mark.requirement("AU-4")


@pytest.fixture
def merging(project: Path) -> Path:
    """On the main branch, with another that has a commit more."""
    git(project, "add", "-A")
    git(project, "commit", "-qm", "all of it")
    git(project, "checkout", "-qb", "feature")
    commit(project, "feature.txt", "new\n")
    git(project, "checkout", "-q", "-")
    return project


def _merge_kinds(cli: CommandLine) -> list[str]:
    return [kind for kind, _ in logged_checkpoints(cli) if kind == "merge"]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_merge_by_a_command_of_the_agent_is_kept(
    switch: str,
    merging: Path,
    cli: CommandLine,
    runtime: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", switch)
    cli.json("config", "set", "auto_files", "0")
    before = tool_call(merging, "t1", "git merge feature")
    with daemon_here():
        send(merging, before)
        git(merging, "merge", "-q", "feature")
        send(merging, after(before))
    kind, reason = logged_checkpoints(cli)[0]
    assert kind == "merge"
    assert reason.startswith("Merged feature into ma")
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["merge", "tool", "initial"]


def test_a_merge_by_another_process_is_kept_before_the_next_step(
    merging: Path, cli: CommandLine
) -> None:
    send(merging, tool_call(merging, "t1", "make"))
    git(merging, "merge", "-q", "feature")
    send(merging, tool_call(merging, "t2", "make"))
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["tool", "merge", "tool", "initial"]


def test_the_trigger_can_be_turned_off(merging: Path, cli: CommandLine) -> None:
    cli.json("config", "set", "auto_merge", "[]")
    send(merging, tool_call(merging, "t1", "make"))
    git(merging, "merge", "-q", "feature")
    send(merging, tool_call(merging, "t2", "make"))
    assert _merge_kinds(cli) == []


def test_a_watched_workspace_keeps_a_merge_when_its_files_have_come_to_rest(
    merging: Path, cli: CommandLine
) -> None:
    happened = threading.Event()
    watcher = open_watcher()
    rules = TriggerRules(files=0, interval_ns=0, merges=True)
    watched = watch_workspace(merging, watcher, os.environ, listener=happened.set, rules=rules)
    now = datetime.now().astimezone()
    try:
        watched.begin(SessionId("s1"))
        assert watched.wait_ns(now) is None
        (merging / "beside.txt").write_text("no merge\n")
        made = _consider_when_due(watched, happened, now)
        assert made is None
        git(merging, "merge", "-q", "feature")
        made = _consider_when_due(watched, happened, now)
        assert made == "merge"
        assert watched.wait_ns(now + timedelta(minutes=1)) is None
    finally:
        watched.close()
        watcher.close()
    assert _merge_kinds(cli) == ["merge"]


def test_git_is_asked_with_the_environment_of_the_agent(
    merging: Path, cli: CommandLine, tmp_path: Path
) -> None:
    """A daemon works for agents whose shells find other programs than its own."""
    git(merging, "config", "core.logAllRefUpdates", "false")
    shutil.rmtree(merging / ".git/logs")
    asked = tmp_path / "asked"
    programs = tmp_path / "programs"
    programs.mkdir()
    wrapper = programs / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    watcher = open_watcher()
    watched = watch_workspace(merging, watcher, os.environ, listener=lambda: None)
    try:
        for use in ("t1", "t2"):
            event = AgentEvent(
                "claude-code",
                "PreToolUse",
                EventKind.BEFORE_TOOL,
                session="s1",
                tool="Bash",
                tool_kind=ToolKind.SHELL,
                command="make",
                tool_use_id=use,
                cwd=str(merging),
            )
            with watched.use_for_event(environment) as opened:
                event_handler(os.environ).handle_in(opened, event)
            git(merging, "merge", "-q", "feature")
    finally:
        watched.close()
        watcher.close()
    assert _merge_kinds(cli) == ["merge"]
    assert "rev-list" in asked.read_text()


def _consider_when_due(
    watched: WatchedWorkspace, happened: threading.Event, now: datetime
) -> str | None:
    while (wait := watched.wait_ns(now)) != 0:
        happened.wait(30 if wait is None else wait / 1e9)
        happened.clear()
    outcome = watched.consider(now)
    return None if outcome is None else outcome.checkpoint.kind.value
