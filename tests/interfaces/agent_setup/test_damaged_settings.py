"""Hooks that the user has damaged: doctor tells, and nothing else suffers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.interfaces.agents import AGENTS, agent_named
from holdfast.interfaces.agents.agent import Locations
from tests.interfaces.agent_setup.trusting import trust
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("HK-1")


def test_doctor_has_a_line_for_each_installed_agent(project: Path, cli: CommandLine) -> None:
    cli.json("install", "claude-code")
    cli.json("install", "goose")
    lines = {f["subject"]: f for f in json.loads(cli("--json", "doctor").out)["findings"]}
    assert lines["claude-code (project)"]["status"] == "ok"
    assert lines["goose (project)"]["status"] == "ok"
    settings = project / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace('"timeout": 120', '"timeout": 1'))
    (project / ".agents/plugins/holdfast/hooks/hooks.json").unlink()
    lines = {f["subject"]: f for f in json.loads(cli("--json", "doctor").out)["findings"]}
    assert lines["claude-code (project)"]["status"] == "warning"
    assert lines["goose (project)"]["cure"] == "holdfast install goose --project"


def _damaged(place: Path) -> None:
    """Still with our command in it, and nothing that an agent could read."""
    place.write_text(place.read_text().replace("{", "{ broken", 1))


@pytest.mark.parametrize("agent", AGENTS)
def test_doctor_tells_of_hooks_of_each_agent_that_were_damaged(
    agent: str, project: Path, cli: CommandLine, own_home: Path
) -> None:
    done = cli.json("install", agent)
    trust(agent, project, own_home)
    places = [Path(change["path"]) for change in done["files"]]
    subject = f"{agent} (project)"
    answer = json.loads(cli("--json", "doctor").out)
    assert {f["subject"]: f["status"] for f in answer["findings"]}[subject] == "ok"
    settings = agent_named(agent).hook_files("project", Locations(project, own_home, {}), "")[-1]
    if settings.content is None:
        _damaged(settings.path)
    else:
        places[-1].write_text(places[-1].read_text() + "\n")
    answer = cli("--json", "doctor")
    assert answer.status == 3
    lines = {f["subject"]: f for f in json.loads(answer.out)["findings"]}
    assert lines[subject]["status"] == ("problem" if settings.content is None else "warning")
    assert lines[subject]["cure"]


def test_damaged_settings_of_one_agent_keep_nothing_from_being_done_for_another(
    project: Path, cli: CommandLine
) -> None:
    cli.json("install", "claude-code")
    cli.json("install", "codex", "--skills")
    for place in (".claude/settings.json", ".codex/hooks.json"):
        _damaged(project / place)
    other = project / ".gemini/settings.json"
    other.parent.mkdir()
    other.write_text("never ours, and no JSON {")
    for agent in ("cursor", "goose", "copilot"):
        cli.json("install", agent)
        cli.json("uninstall", agent)
    # Whether Codex still uses them is not known.
    assert list((project / ".agents" / "skills").iterdir())
    subjects = [f["subject"] for f in json.loads(cli("--json", "doctor").out)["findings"]]
    assert "codex (project)" in subjects
    assert "gemini (project)" not in subjects


@pytest.mark.on_disk  # the doctor warns of a store in memory
def test_a_script_that_cannot_run_is_reported_and_mended(project: Path, cli: CommandLine) -> None:
    cli.json("install", "cline")
    script = project / ".clinerules" / "hooks" / "PreToolUse"
    script.chmod(0o644)
    lines = {f["subject"]: f for f in json.loads(cli("--json", "doctor").out)["findings"]}
    assert lines["cline (project)"]["cure"] == "holdfast install cline --project"
    cli.json("install", "cline")
    assert os.access(script, os.X_OK)
    assert script.stat().st_mode & 0o777 == 0o755
    assert cli("--json", "doctor").status == 0
