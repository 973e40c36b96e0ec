"""Agent state through the library: set, saved with a checkpoint, restored together, undone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer, start_session
from holdfast.bootstrap.settings import project_settings
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import StoreDamaged, UsageError
from holdfast.domain.ids import SessionId
from holdfast.engine.sessions.active_agents import AGENT_PROCESS
from holdfast.engine.settings import set_setting
from tests.behind_the_api import engine_of
from tests.support.encrypted_stores import files_with, make_encrypted
from tests.support.hostile_trees import fill


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "code.py").write_text("v1")
    return workspace


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def choose(workspace: Path, *entries: str) -> None:
    with open_workspace(workspace, create=True) as opened:
        set_setting(opened.engine, "agent_state", list(entries))


@pytest.mark.requirement("AG-1")
def test_files_memory_and_given_state_are_restored_together_and_undone(
    workspace: Path, home: Path
) -> None:
    memory = (
        home
        / ".claude/projects"
        / "".join(c if c.isalnum() and c.isascii() else "-" for c in str(workspace))
    )
    memory = memory / "memory"
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("uses tabs")
    choose(workspace, "claude-code")
    with SessionCheckpointer(workspace, "s") as session:
        session.set_agent_state("planner", {"memory": ["a"], "context": {"step": 1}})
        before = session.save_checkpoint("before")
        assert not before.checkpoint.partial
        (workspace / "code.py").write_text("v2")
        (memory / "MEMORY.md").write_text("uses spaces")
        (memory / "new.md").write_text("new")
        session.set_agent_state("planner", {"memory": ["a", "b"]})
        session.set_agent_state("reviewer", {})
        plan = session.plan_restore(before.checkpoint.id)
        [step] = [step for step in plan.components if step.name == "agents"]
        assert any("MEMORY.md" in text for text in step.actions)
        assert any("session s is still open" in text for text in plan.warnings)
        session.restore(before.checkpoint.id)
        assert (workspace / "code.py").read_text() == "v1"
        assert (memory / "MEMORY.md").read_text() == "uses tabs"
        assert not (memory / "new.md").exists()
        assert session.agent_states() == {"planner": {"memory": ["a"], "context": {"step": 1}}}
        session.undo()
        assert (memory / "MEMORY.md").read_text() == "uses spaces"
        assert (memory / "new.md").read_text() == "new"
        assert session.agent_states() == {"planner": {"memory": ["a", "b"]}, "reviewer": {}}


@pytest.mark.requirement("AG-1", "CP-8")
def test_what_an_agent_gave_is_durable_and_seen_by_its_own_session_alone(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        session.set_agent_state("a", {"n": 1})
    with SessionCheckpointer(workspace, "two") as other:
        assert other.agent_states() == {}
        other.set_agent_state("a", {"n": 2})
        other.set_agent_state("a", None)
        assert other.agent_states() == {}
    with SessionCheckpointer(workspace, "one") as session:
        assert session.agent_states() == {"a": {"n": 1}}
        file = session.save() / "agent-states"
        assert file.stat().st_mode & 0o777 == 0o600
        file.write_bytes(b"[1]")
        with pytest.raises(StoreDamaged, match="unusable"):
            session.agent_states()
        outcome = session.save_checkpoint("files are saved all the same")
        assert outcome.checkpoint.partial


@pytest.mark.requirement("AG-1")
@pytest.mark.parametrize(
    ("agent", "state"),
    [
        ("", {}),
        ("a\n", {}),
        ("x" * 200, {}),
        ("a", {"n": float("nan")}),
        ("a", {"n": object()}),
        ("a", ["no mapping"]),
        ("a", {"text": "x" * (17 << 20)}),
    ],
)
def test_what_is_no_state_is_refused_and_nothing_stored(
    workspace: Path, agent: str, state: Any
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(UsageError):
            session.set_agent_state(agent, state)
        assert session.agent_states() == {}


@pytest.mark.requirement("AG-1", "ST-6")
def test_what_agents_gave_cannot_be_read_in_an_encrypted_store(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    make_encrypted(workspace, key)
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    with SessionCheckpointer(workspace, "s") as session:
        session.set_agent_state("agent", {"secret": "unmistakable words"})
        session.checkpoint("with a secret")
        assert list(files_with(session.save(), b"unmistakable")) == []
        assert session.agent_states() == {"agent": {"secret": "unmistakable words"}}


@pytest.mark.requirement("AG-1")
def test_a_project_cannot_say_what_outside_of_it_is_read(workspace: Path) -> None:
    (workspace / ".holdfast").mkdir()
    config = {"agent_state": ["~/.ssh"]}
    (workspace / ".holdfast/config.toml").write_text(
        "\n".join(f"{key} = {json.dumps(value)}" for key, value in config.items())
    )
    with SessionCheckpointer(workspace, "s") as session:
        assert session.opened.settings.effective.agent_state == ()
    held_back = project_settings(workspace, os.environ).held_back
    assert held_back == {"agent_state": "agent_state cannot be set by a project"}


@pytest.mark.requirement("AG-1", "RB-1")
def test_agents_at_work_are_reported_where_nothing_of_theirs_is_kept(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    with SessionCheckpointer(workspace, "mine") as session:
        first = session.checkpoint("before")
        fill(workspace / "file", b"2")
        assert not any("is still open" in text for text in session.plan_restore(first).warnings)
        start_session(workspace, "theirs", agent="codex").close()
        notified = "its agent is notified of a restore at its next step"
        notice = f"session theirs (codex) is still open; {notified}"
        assert notice in session.plan_restore(first).warnings
        session.set_agent_state("planner", {"step": 1})
        second = session.checkpoint("with a state")
        session.set_agent_state("planner", {"step": 2})
        fill(workspace / "file", b"3")
        warnings = session.plan_restore(second).warnings
        assert [text for text in warnings if "theirs" in text] == [notice]
        session.restore(first)
        assert not any("is still open" in text for text in session.plan_restore("HEAD").warnings)


@pytest.mark.requirement("RB-1", "SE-13")
def test_a_session_whose_agent_is_gone_is_not_called_open(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    with SessionCheckpointer(workspace, "mine") as session:
        first = session.checkpoint("before")
        fill(workspace / "file", b"2")
        start_session(workspace, "theirs", agent="codex").close()
        story = engine_of(session).vault.story
        story.set_fact(SessionId("theirs"), AGENT_PROCESS, "4194304 1", expected=None)
        assert not any("theirs" in text for text in session.plan_restore(first).warnings)


@pytest.mark.requirement("AG-1", "RB-1")
def test_a_process_of_an_agent_is_reported_where_nothing_of_its_is_kept(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    program = tmp_path / "bin/codex"
    fill(program, b"#!/bin/sh\necho ready\nread line\n")
    program.chmod(0o755)
    with SessionCheckpointer(workspace, "mine") as session:
        first = session.checkpoint("before")
        fill(workspace / "file", b"2")
        with subprocess.Popen([program], cwd=workspace, stdin=-1, stdout=-1) as agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"ready\n"
            warnings = session.plan_restore(first).warnings
            agent.communicate(b"\n")
    assert any(f"codex is running here (process {agent.pid})" in text for text in warnings)


@pytest.mark.requirement("RB-1")
def test_many_open_sessions_are_one_remark(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    with SessionCheckpointer(workspace, "mine") as session:
        first = session.checkpoint("before")
        fill(workspace / "file", b"2")
        for number in range(4):
            start_session(workspace, f"theirs-{number}", agent="codex").close()
        [told] = [one for one in session.plan_restore(first).warnings if "still open" in one]
    assert told.startswith(
        "4 sessions are still open (theirs-3 (codex), theirs-2 (codex), …); their agents"
    )
