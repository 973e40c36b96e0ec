"""Recorded sessions of every agent, replayed as processes, each ending in a disaster that is
undone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.daemon.client import ask
from tests.interfaces.cli.command_line import CommandLine
from tests.support.forked_commands import call_hook
from tests.support.hook_process import recorded
from tests.support.workspace_state import state_of

DISASTERS = (
    "rm -rf src",
    "find . -name '*.py' -o -name '*.txt' | xargs sed -i s/price/cost/",
    "git clean -fdx && git checkout -- .",
)


@pytest.mark.requirement("RB-10", "HK-2", "AU-1", "AU-2", "AU-3", "SE-1", "SE-3", "SE-7", "CL-5")
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "with the daemon"])
def test_a_session_that_ends_in_disasters_is_rolled_back_byte_for_byte(
    agent: str, daemon: bool, project: Path, cli: CommandLine, request: pytest.FixtureRequest
) -> None:
    if daemon:
        request.getfixturevalue("runtime")
        ask("ping", start=True, start_s=120)
    cli.json("config", "set", "include", '[".env"]')
    sound = state_of(project)
    *_, end = recorded(agent, project, "true")
    session = ""
    for number, disaster in enumerate(DISASTERS, 1):
        start, message, edit, before, after, stop, _ = recorded(agent, project, disaster, number)
        said = [
            _answer(agent, e, project)
            for e in ((start, message, edit) if number == 1 else (message,))
        ]
        said.append(_answer(agent, before, project))
        _run(disaster, project)
        assert state_of(project) != sound
        said += [_answer(agent, after, project), _answer(agent, stop, project)]
        # Once, unless the daemon was too slow to learn that it was delivered.
        expected = 0 if number == 1 else 1
        assert _telling(said) == expected or (daemon and _telling(said) > expected == 1)
        if daemon:
            _settle()
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


def _run(disaster: str, project: Path) -> None:
    done = subprocess.run(["bash", "-c", disaster], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _settle() -> None:
    """Until the daemon has dealt with what it answered first."""
    while ask("status")["connections"] > 1:
        continue


def _telling(answers: list[str]) -> int:
    """After a restore one of the next answers says so (RB-10), where the agent takes words; all
    others say nothing."""
    telling = [answer for answer in answers if "restored to an earlier state" in answer]
    silent = [answer for answer in answers if answer not in telling]
    assert all(json.loads(answer or "{}") in ({}, {"cancel": False}) for answer in silent)
    return len(telling)


def _answer(agent: str, event: dict[str, object], project: Path) -> str:
    answer = call_hook(agent, event, project)
    assert (answer.status, answer.err) == (0, "")
    return answer.out


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
