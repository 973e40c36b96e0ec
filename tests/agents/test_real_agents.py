"""Real agents against a stub model, with what `holdfast install` sets up and nothing else.

Run by `make agents`, which gets them from the package registry. A program that is missing is a
failure, not a reason to pass over it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.real_agents import AGENTS, Desk, run, tidy_up
from tests.agents.stub_model import Step, StubModel, serving
from tests.interfaces.agent_setup.trusting import trust_codex_hooks
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemons import runtime_directory
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.agents

PROGRAMS = Path(os.environ.get("HOLDFAST_AGENTS", ".venv/agents")).resolve() / "node_modules/.bin"
DESTROYED = "find src -delete"


@pytest.fixture
def model(tmp_path: Path) -> Iterator[StubModel]:
    shop = tmp_path / "shop"
    steps = [
        Step("write", str(shop / "new.txt"), "fresh"),
        Step("mcp", str(shop / "notes.txt"), "overwritten by a server"),
        Step("shell", DESTROYED),
    ]
    with serving(steps) as playing:
        yield playing


@pytest.fixture
def desk(tmp_path: Path, model: StubModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    project, home = tmp_path / "shop", tmp_path / "home"
    (project / "src" / "deep").mkdir(parents=True)
    (project / "src" / "app.py").write_text("price = 1\n")
    (project / "src" / "deep" / "data.bin").write_bytes(bytes(range(256)) * 40)
    (project / "src" / "run.sh").write_text("#!/bin/sh\n")
    (project / "src" / "run.sh").chmod(0o755)
    (project / "notes.txt").write_text("ideas\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with runtime_directory():
        desk = Desk(project, home, model.url, PROGRAMS)
        yield desk
        tidy_up(desk)


@pytest.fixture
def cli(desk: Desk) -> CommandLine:
    return CommandLine(desk.project)


def _set_up(agent: str, desk: Desk, cli: CommandLine, *, trusted: bool = True) -> None:
    if not (PROGRAMS / AGENTS[agent].program).exists():
        pytest.fail(f"{AGENTS[agent].program} is not in {PROGRAMS}: run make agents")
    AGENTS[agent].prepare(desk)
    cli.json("install", agent)
    if agent == "codex" and trusted:
        trust_codex_hooks(desk.project, desk.home)


def _run(agent: str, desk: Desk, *, again: bool = False) -> None:
    done = run(AGENTS[agent], desk, again=again)
    assert done.returncode == 0, done.stdout + done.stderr


def _own(project: Path) -> dict[str, Any]:
    """What is the user's: agents keep things of their own in directories of their own."""
    found = state_of(project)
    return {path: state for path, state in found.items() if not str(path).startswith(".")}


def _of(cli: CommandLine) -> list[dict[str, Any]]:
    session = cli.json("status")["session_id"]
    found: list[dict[str, Any]] = cli.json("log", "-n", "100", "--session", session)
    return found


@pytest.mark.requirement("HK-2", "HK-6", "AU-1", "AU-3", "RB-10", "RB-11", "SE-1")
@pytest.mark.parametrize("agent", AGENTS)
def test_undo_brings_back_what_an_agent_destroyed_and_the_resumed_conversation_is_notified(
    agent: str, desk: Desk, cli: CommandLine, model: StubModel, tmp_path: Path
) -> None:
    _set_up(agent, desk, cli)
    before = _own(desk.project)
    shutil.copytree(desk.project, tmp_path / "copy", symlinks=True)
    _run(agent, desk)
    assert not (desk.project / "src").exists()
    assert (desk.project / "notes.txt").read_text() == "overwritten by a server"
    made = _of(cli)
    kinds = [one["kind"] for one in made]
    assert "risky" in kinds
    assert any("write_file" in one["reasoning"] for one in made) or agent == "codex"
    session = cli.json("status")["session_id"]
    cli.json("undo", "--yes")
    assert _own(desk.project / "src") == _own(tmp_path / "copy" / "src")
    assert (desk.project / "notes.txt").read_text() == "overwritten by a server"
    cli.json("undo", "--turn", "--yes")
    assert _own(desk.project) == before == _own(tmp_path / "copy")
    assert not model.heard("The user undid")
    if AGENTS[agent].again:
        _run(agent, desk, again=True)
        assert model.heard("The user undid")
        assert cli.json("status")["session_id"] == session


@pytest.mark.requirement("HK-7")
@pytest.mark.parametrize("agent", AGENTS)
def test_the_model_reads_that_nothing_is_saved(
    agent: str,
    desk: Desk,
    cli: CommandLine,
    model: StubModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _set_up(agent, desk, cli)
    blocked = tmp_path / "blocked"
    blocked.write_text("no directory")
    monkeypatch.setenv("HOLDFAST_HOME", str(blocked))
    _run(agent, desk)
    assert not (desk.project / "src").exists()
    assert model.heard("Holdfast is not protecting this session")


@pytest.mark.requirement("HK-6")
@pytest.mark.parametrize("agent", ["codex", "copilot", "gemini"])
def test_hooks_that_an_agent_does_not_trust_do_not_run_and_are_named(
    agent: str, desk: Desk, cli: CommandLine
) -> None:
    _set_up(agent, desk, cli, trusted=False)
    (desk.home / ".copilot" / "config.json").unlink(missing_ok=True)
    (desk.home / ".gemini" / "trustedFolders.json").unlink(missing_ok=True)
    run(AGENTS[agent], desk)
    assert cli("log").status != 0  # nothing was ever saved
    findings = {each["subject"]: each for each in cli("--json", "doctor").json["findings"]}
    assert findings[f"{agent} (project)"]["status"] == "problem"
    assert "trust" in findings[f"{agent} (project)"]["finding"]
