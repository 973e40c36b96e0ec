"""Protection that is off is reported in the session of the agent, once; and when it is back."""

from __future__ import annotations

import fcntl
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.app.automation.notices import NAME
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.daemon.client import ask
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemons import runtime_directory
from tests.support.hook_process import HookAnswer, recorded
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("HK-7")

OFF = "not protecting this session"
BACK = "protects this session again"


@pytest.fixture(autouse=True)
def second_place() -> Iterator[Path]:
    with runtime_directory() as directory:
        yield directory / "holdfast"


@pytest.fixture
def blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stores would be, there is a file: nothing can be written beside them either."""
    home = tmp_path / "blocked"
    home.write_text("no directory")
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    return home


def _say(agent: str, events: list[Any], project: Path) -> list[HookAnswer]:
    answers = [call_hook(agent, event, project) for event in events]
    assert {answer.status for answer in answers} == {0}
    for answer in answers:
        assert isinstance(json.loads(answer.out or "{}"), dict)
    return answers


def _telling(answers: list[HookAnswer], words: str) -> int:
    return sum(words in answer.out for answer in answers)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_session_is_notified_once_that_nothing_is_saved_and_once_that_it_is_again(
    agent: str, project: Path, blocked: Path
) -> None:
    events = recorded(agent, project, "true")[:6]
    answers = _say(agent, [*events, *events], project)
    assert _telling(answers, OFF) == 1
    blocked.unlink()
    blocked.mkdir()
    answers = _say(agent, [*events, *events], project)
    assert (_telling(answers, OFF), _telling(answers, BACK)) == (0, 1)
    blocked.rename(blocked.with_name("away"))
    blocked.write_text("no directory")
    assert _telling(_say(agent, events, project), OFF) == 1


@pytest.mark.parametrize("daemon", ["off", "on"])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_home_that_becomes_a_file_in_the_middle_of_a_session_is_reported(
    agent: str,
    daemon: str,
    project: Path,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", daemon)
    if daemon == "on":
        ask("ping", start=True, start_s=120)
    events = recorded(agent, project, "true")[:6]
    assert _telling(_say(agent, events, project), OFF) == 0
    holdfast_home.rename(project.with_name("away"))
    holdfast_home.write_text("no directory")
    answers = _say(agent, recorded(agent, project, "true", 2)[2:6], project)
    assert _telling(answers, OFF) == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_each_session_is_notified(agent: str, project: Path, blocked: Path) -> None:
    events = recorded(agent, project, "true")[:6]
    assert _telling(_say(agent, events, project), OFF) == 1
    others = json.loads(json.dumps(events).replace(_session_of(events), "another"))
    assert _telling(_say(agent, others, project), OFF) == 1


def _session_of(events: list[Any]) -> str:
    names = ("session_id", "sessionId", "conversation_id", "sessionID", "taskId")
    return next(str(events[1][name]) for name in names if name in events[1])


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini"])
def test_the_user_reads_it_as_well_as_the_model(agent: str, project: Path, blocked: Path) -> None:
    (answer,) = _say(agent, recorded(agent, project, "true")[1:2], project)
    shown = answer.json
    assert shown["systemMessage"].startswith("Holdfast: not protected. ")
    assert OFF in shown["hookSpecificOutput"]["additionalContext"]
    assert "decision" not in shown
    assert "continue" not in shown


def _damaged(project: Path, home: Path) -> None:
    store = next((home / "stores").iterdir())
    os.rename(store / "catalog.db", store / "catalog.away")


@pytest.mark.parametrize("daemon", ["off", "on"])
def test_a_damaged_store_is_reported_by_the_daemon_as_by_the_hook(
    daemon: str,
    project: Path,
    cli: CommandLine,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", daemon)
    cli.save()
    _damaged(project, holdfast_home)
    if daemon == "on":
        ask("ping", start=True, start_s=120)
    events = recorded("claude-code", project, "rm -rf src")[1:4]
    answers = _say("claude-code", [*events, *events], project)
    assert _telling(answers, OFF) == 1
    assert "holdfast repair" in answers[0].json["systemMessage"]


@pytest.mark.parametrize("daemon", ["off", "on"])
def test_a_store_that_another_process_holds_is_reported(
    daemon: str,
    project: Path,
    cli: CommandLine,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", daemon)
    monkeypatch.setenv("HOLDFAST_LOCK_TIMEOUT", "0.1")
    cli.save()
    cli.json("config", "set", "lock_timeout", "0.1")
    if daemon == "on":
        ask("ping", start=True, start_s=120)
    store = next((holdfast_home / "stores").iterdir())
    events = recorded("claude-code", project, "rm -rf src")
    with open(store / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answers = _say("claude-code", [*events[1:4], *events[1:4]], project)
    assert _telling(answers, OFF) == 1
    assert _telling(_say("claude-code", events[1:4], project), BACK) == 1


def test_a_home_directory_that_is_refused_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    (answer,) = _say("claude-code", recorded("claude-code", project, "true")[1:2], project)
    assert "home directory" in answer.json["systemMessage"]


def test_where_nothing_can_be_written_it_is_reported_with_each_message(
    project: Path, blocked: Path, second_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_place.write_text("no directory")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(blocked))
    monkeypatch.setattr("holdfast.interfaces.daemon.address._SHARED", str(blocked))
    _, message, edit, before, *_ = recorded("claude-code", project, "true")
    place = project.parent / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        f"from holdfast.interfaces.daemon import address\naddress._SHARED = {str(blocked)!r}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(place))
    answers = _say("claude-code", [message, edit, before, message, edit], project)
    assert [OFF in answer.out for answer in answers] == [True, False, False, True, False]


def test_a_trigger_that_the_user_turned_off_is_reported_once(
    project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "auto_edit", "off")
    events = recorded("claude-code", project, "true")
    answers = _say("claude-code", [*events[:4], *events[1:4]], project)
    assert _telling(answers, "auto_edit is off") == 1
    assert _telling(answers, BACK) == 0


def test_who_hears_once_of_a_file_left_out_learns_where_the_next_ones_are_listed(
    project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "budget", "200kB")
    events = recorded("claude-code", project, "true")
    answers = []
    for name in ("one.bin", "two.bin"):
        (project / name).write_bytes(random.Random(name).randbytes(300_000))
        answers += _say("claude-code", events[1:4], project)
    assert _telling(answers, "does not include one.bin") == 1
    assert _telling(answers, "does not include two.bin") == 0
    assert _telling(answers, "To list them: holdfast status --skipped") == 1


@pytest.mark.requirement("HK-7", "CP-12")
def test_a_file_that_an_agent_makes_too_large_to_save_is_reported_once(
    project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "max_file_size", "1MB")
    (project / "model.bin").write_bytes(bytes(2_000_000))
    events = recorded("claude-code", project, "true")
    assert _telling(_say("claude-code", events[:2], project), "model.bin") == 0
    (project / "dump.sql").write_bytes(bytes(1_500_000))
    answers = _say("claude-code", events[2:], project)
    told = "do not include dump.sql (1.5 MB), because files larger than max_file_size (1.0 MB)"
    assert _telling(answers, told) == 1
    assert _telling(answers, "model.bin") == 0
    command = "holdfast config set max_file_size 3MB"
    assert _telling(answers, f"To raise the limit: {command}") == 1
    assert cli(*command.split()[1:]).status == 0
    assert "larger than" not in cli("status", "--skipped").out


def test_what_a_checkpoint_is_without_is_reported_once(project: Path, cli: CommandLine) -> None:
    cli.json("config", "set", "components", '["git", "someone-elses"]')
    events = recorded("claude-code", project, "true")
    answers = _say("claude-code", [*events[1:4], *events[1:4]], project)
    assert _telling(answers, "does not include someone-elses") == 1
    assert _telling(answers, OFF) == 0


def test_what_was_reported_is_remembered_beside_the_stores_and_no_longer_than_it_is_true(
    project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    cli.save()
    _damaged(project, holdfast_home)
    message = recorded("claude-code", project, "true")[1]
    assert _telling(_say("claude-code", [message], project), OFF) == 1
    assert (holdfast_home / NAME).stat().st_mode & 0o777 == 0o600
    store = next((holdfast_home / "stores").iterdir())
    os.rename(store / "catalog.away", store / "catalog.db")
    assert _telling(_say("claude-code", [message], project), BACK) == 1
    assert not (holdfast_home / NAME).exists()


@pytest.mark.parametrize("daemon", ["off", "on"])
def test_a_mistake_in_the_settings_is_reported_once_and_ends_no_protection(
    daemon: str,
    project: Path,
    cli: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOLDFAST_DAEMON", daemon)
    settings = tmp_path / "config" / "holdfast" / "config.toml"
    settings.parent.mkdir(parents=True)
    if daemon == "on":
        ask("ping", start=True, start_s=120)
    events = recorded("claude-code", project, "rm -rf src")
    assert _telling(_say("claude-code", events[:3], project), "not applied") == 0
    settings.write_text('auto_edit = "onn"\nbudjet = 5\nthis is no TOML\n')
    answers = _say("claude-code", [*events[3:4], *events[1:4]], project)
    mistakes = "auto_edit cannot be 'onn'", "unknown setting: 'budjet'", "line 3 is not valid TOML"
    for words in mistakes:
        assert _telling(answers, words) == 1
    assert _telling(answers, OFF) == 0
    assert any(one["kind"] == "risky" for one in cli.json("log"))
    status, doctor = cli("--json", "status").json, cli("--json", "doctor").json
    findings = {one["finding"] for one in doctor["findings"]}
    for words in ("auto_edit", "budjet", "line 3"):
        (warning,) = [one for one in status["warnings"] if words in one]
        assert str(settings) in warning
        assert warning in findings


def test_the_start_of_an_agent_of_cline_leaves_it_to_the_next_tool(
    project: Path, blocked: Path
) -> None:
    start, message, edit, *_ = recorded("cline", project, "true")
    answers = _say("cline", [start, message, edit], project)
    assert [OFF in answer.out for answer in answers] == [False, False, True]
