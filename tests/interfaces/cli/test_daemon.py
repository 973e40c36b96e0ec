"""`holdfast daemon` is the daemon in the foreground, and `status` tells of its watch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.interfaces.daemon.client import ask
from tests.interfaces.cli.command_line import CommandLine, command
from tests.support.agent_project import patience as patience
from tests.support.agent_project import runtime as runtime
from tests.support.daemons import daemon_here, save_by_daemon

pytestmark = pytest.mark.requirement("AU-6", "CL-1")


@pytest.fixture(autouse=True)
def patient_status(runtime: Path, patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that is slow to answer on a busy machine is not one that is not there."""
    monkeypatch.setattr("holdfast.interfaces.cli.commands.status._DAEMON_S", 120.0)


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(command("daemon", *arguments), stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def test_it_says_where_it_listens_answers_and_ends_with_ctrl_c(runtime: Path) -> None:
    with serving() as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(f"Listening on {runtime}")
        assert ask("ping")["pid"] == child.pid
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
    assert list((runtime / "holdfast").glob("*.sock")) == []


def test_a_second_one_is_refused_and_notified_of_the_first(cli: CommandLine) -> None:
    with serving("--json") as child:
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        assert first["pid"] == child.pid
        answer = cli("daemon", "--json")
        assert answer.status == 5
        assert str(child.pid) in answer.error["message"]


def test_how_long_it_stays_comes_from_the_users_own_file(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast/config.toml").write_text("daemon_idle = 7\n")
    with serving() as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert ask("status")["idle_limit_s"] == 420
    assert cli("config", "set", "daemon_idle", "3").status == 2


@pytest.mark.parametrize("value", ["never", "-1"])
def test_a_time_that_is_none_is_refused(cli: CommandLine, value: str) -> None:
    answer = cli("daemon", f"--idle={value}", "--json")
    assert answer.status == 2


def test_status_tells_whether_changes_are_known(cli: CommandLine, project: Path) -> None:
    cli.save()
    assert cli.json("status")["watch"] is None
    with daemon_here() as daemon:
        assert cli.json("status")["watch"] is None
        with daemon.workspaces.use(str(project)):
            pass  # open, and not yet scanned
        assert "scans every file" in cli("status").out
        save_by_daemon(project)
        assert cli.json("status")["watch"]["watched"]
        assert "scans every file" not in cli("status").out
        (watched,) = daemon.workspaces.all()
        watched.watch.doubt("somebody said so")
        assert "somebody said so" in cli("status").out
        watched.watch.differed("src/")
        assert "(1 time wrong)" in cli("status").out
        assert os.getpid() == ask("status", {"workspace": str(project)})["pid"]


def test_status_says_why_a_workspace_is_not_watched(cli: CommandLine, project: Path) -> None:
    cli("config", "set", "watch", '"off"')
    with daemon_here():
        save_by_daemon(project)
        assert "none: watching is turned off" in cli("status").out
