"""Recorded sessions of every agent, replayed as processes, each ending in a disaster taken back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from holdfast.interfaces.hooks.agents import AGENTS
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.hooks.hook_process import call_hook, recorded
from tests.interfaces.hooks.workspace_state import state_of

DISASTERS = (
    "rm -rf src",
    "find . -name '*.py' -o -name '*.txt' | xargs sed -i s/price/cost/",
    "git clean -fdx && git checkout -- .",
)


@pytest.mark.requirement("HK-2", "AU-1", "AU-2", "AU-3", "SE-1", "SE-3", "SE-7", "CL-5")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_session_that_ends_in_disasters_is_taken_back_byte_for_byte(
    agent: str, project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "include", '[".env"]')
    sound = state_of(project)
    *_, end = recorded(agent, project, "true")
    session = ""
    for number, disaster in enumerate(DISASTERS, 1):
        start, message, edit, before, after, stop, _ = recorded(agent, project, disaster, number)
        for event in (start, message, edit) if number == 1 else (message,):
            _accepted(agent, event, project)
        _accepted(agent, before, project)
        subprocess.run(["bash", "-c", disaster], cwd=project, check=True, capture_output=True)
        assert state_of(project) != sound
        _accepted(agent, after, project)
        _accepted(agent, stop, project)
        session = cli.json("status")["session_id"]
        newest = cli.json("log", "--session", session)
        risky = next(found for found in newest if found["kind"] == "risky")
        assert risky["reasoning"].startswith("Before ")
        assert "(risky: " in risky["reasoning"]
        after_it = next(found for found in newest if found["kind"] == "tool")
        assert after_it["reasoning"].startswith("After ")
        assert sum(after_it["changed"].values()) > 0
        cli.json("restore", risky["id"], "--session", session, "--yes")
        assert state_of(project) == sound
    _accepted(agent, end, project)
    kinds = [found["kind"] for found in cli.json("log", "-n", "50", "--session", session)]
    assert kinds[-1] == "initial"
    assert kinds.count("risky") == len(DISASTERS)
    assert "message" in kinds
    assert cli.json("status")["unprotected"] == []
    assert cli.json("check")["ok"]


def _accepted(agent: str, event: dict[str, object], project: Path) -> None:
    """Status 0, an answer that the agent takes for a yes, and not a word beside it."""
    answer = call_hook(agent, event, project)
    assert (answer.status, answer.err) == (0, "")
    if agent == "goose":
        assert answer.out == ""
    elif agent == "cline":
        assert json.loads(answer.out) == {"cancel": False}
    else:
        assert json.loads(answer.out) == {}
