"""Where nothing can be stored, the log beside the stores cannot be written either: it is recorded
anyway, in another place that `status` and `doctor` read."""

from __future__ import annotations

import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.app.automation.problem_log import MOST_BYTES, NAME
from holdfast.domain.errors import NoSpace
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.daemon.client import ask
from holdfast.interfaces.hooks.runtime_files import problem_log
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemons import daemon_here, runtime_directory, save_by_daemon
from tests.support.hook_process import call_hook, recorded

pytestmark = pytest.mark.requirement("HK-2")

EVER = datetime.min.replace(tzinfo=UTC)
_LIMIT = 64 << 10


@pytest.fixture(autouse=True)
def second_place() -> Iterator[Path]:
    with runtime_directory() as directory:
        yield directory / "holdfast"


@contextmanager
def _full_disk(home: Path) -> Iterator[None]:
    """No file of the stores can grow, and neither can the log beside them. The limit counts for
    each file: one that is new, and elsewhere, has room."""
    (home / NAME).write_bytes(b"x" * (_LIMIT - 1) + b"\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.requirement("RL-3")
@pytest.mark.parametrize("daemon", ["off", "on"])
def test_on_a_full_disk_the_agent_goes_on_and_status_tells(
    daemon: str, project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    cli.save()
    session = cli.json("status")["session_id"]
    known = cli.json("log", "--session", session)
    (project / "src" / "noise").write_bytes(os.urandom(1 << 20))
    with _full_disk(holdfast_home):
        if daemon == "on":
            ask("ping", start=True, start_s=120)
        event = recorded("claude-code", project, "rm -rf src")[3]
        answer = call_hook("claude-code", event, project, environment={"HOLDFAST_DAEMON": daemon})
    assert (answer.status, "not protected" in answer.json["systemMessage"]) == (0, True)
    status = cli.json("status")
    assert [(entry["tool"], entry["event"]) for entry in status["unprotected"]] == [
        ("Bash", "PreToolUse")
    ]
    assert cli.json("log", "--session", session) == known
    assert cli.json("check", "--data")["ok"]


@pytest.mark.usefixtures("ordinary_permissions")
@pytest.mark.parametrize("agent", AGENTS)
def test_with_a_home_that_is_read_only_the_agent_goes_on_and_status_tells(
    agent: str,
    project: Path,
    cli: CommandLine,
    tmp_path: Path,
    second_place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("HOLDFAST_HOME")
    answer = call_hook(agent, recorded(agent, project, "rm -rf src")[3], project)
    assert answer.status == 0
    assert "not protected" in answer.err
    (log,) = problem_log(os.environ).files()
    assert log.parent == second_place
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    told = cli("status")
    assert told.status == 4  # there is no store
    assert "1 agent event without a checkpoint in the last day" in told.out
    assert str(log) in told.out
    told = cli("status", "--json")
    assert [entry["agent"] for entry in json.loads(told.out)["unprotected"]] == [agent]
    assert json.loads(told.err)["error"]["code"] == "not_found"
    findings = {
        each["subject"]: each for each in json.loads(cli("doctor", "--json").out)["findings"]
    }
    assert findings["home"]["status"] == "problem"
    assert "1 event could not be saved" in findings["hooks"]["finding"]


def test_a_log_of_another_home_is_not_reported_here(
    project: Path, second_place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    monkeypatch.setenv("HOLDFAST_HOME", str(blocked / "home"))
    problem_log(os.environ).note_missed(project, "s", NoSpace("no room"))
    assert [each.message for each in problem_log(os.environ).problems_of(project, EVER)] == [
        "no room"
    ]
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    assert problem_log(os.environ).problems_of(project, EVER) == []


def test_a_second_place_that_others_can_enter_is_neither_written_nor_read(
    project: Path,
    second_place: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    monkeypatch.setenv("HOLDFAST_HOME", str(blocked / "home"))
    problem_log(os.environ).note_missed(project, "s", NoSpace("no room"))
    second_place.chmod(0o755)
    monkeypatch.setattr(
        "holdfast.interfaces.daemon.address.candidate_directories", lambda _: [str(second_place)]
    )
    assert problem_log(os.environ).problems_of(project, EVER) == []
    problem_log(os.environ).note_missed(project, "s", NoSpace("still none"))
    assert "not protected: still none" in capsys.readouterr().err


def test_a_line_that_was_cut_off_does_not_spoil_the_next(
    project: Path, holdfast_home: Path
) -> None:
    (holdfast_home / NAME).write_text('{"at": "2026-01-0')
    problem_log(os.environ).note_missed(project, "s", NoSpace("no room"))
    assert [each.message for each in problem_log(os.environ).problems_of(project, EVER)] == [
        "no room"
    ]


def test_the_second_log_is_bounded_too(
    project: Path, second_place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    monkeypatch.setenv("HOLDFAST_HOME", str(blocked / "home"))
    problem_log(os.environ).note_missed(project, "s", NoSpace("first"))
    (log,) = problem_log(os.environ).files()
    log.write_bytes(b"x" * (MOST_BYTES + 1))
    problem_log(os.environ).note_missed(project, "s", NoSpace("no room"))
    assert log.stat().st_size < 2_000
    assert [each.message for each in problem_log(os.environ).problems_of(project, EVER)] == [
        "no room"
    ]


def test_a_workspace_is_found_in_the_log_whatever_links_the_agent_came_along(
    project: Path, cli: CommandLine, holdfast_home: Path, tmp_path: Path
) -> None:
    cli.save()
    way = tmp_path / "way"
    way.symlink_to(project)
    store = next((holdfast_home / "stores").iterdir())
    os.rename(store / "catalog.db", store / "catalog.away")
    call_hook("claude-code", recorded("claude-code", way, "rm -rf src")[3], way)
    os.rename(store / "catalog.away", store / "catalog.db")
    assert [entry["tool"] for entry in cli.json("status")["unprotected"]] == ["Bash"]


@pytest.mark.requirement("AU-4")
def test_an_automatic_checkpoint_that_cannot_be_made_is_reported_once(
    project: Path, cli: CommandLine
) -> None:
    cli.save()
    for _ in range(3):
        problem_log(os.environ).note_missed(project, "cli", NoSpace("no room"))
    (told,) = cli.json("status")["unprotected"]
    assert (told["agent"], told["event"]) == ("daemon", "automatic checkpoint")


@pytest.mark.requirement("AU-4")
@pytest.mark.usefixtures("patience")
def test_what_a_daemon_could_not_keep_when_it_ended_is_reported(
    project: Path, cli: CommandLine, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", "on")
    cli.save()
    store = next((holdfast_home / "stores").iterdir())
    with daemon_here():
        save_by_daemon(project)
        (project / "src" / "app.py").write_text("price = 9\n")
        os.rename(store / "catalog.db", store / "catalog.away")
    os.rename(store / "catalog.away", store / "catalog.db")
    told = cli.json("status")["unprotected"]
    assert [entry["agent"] for entry in told] == ["daemon"]
