"""`holdfast doctor`: what is wrong around a store, with the cure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from holdfast.adapters.local import environment_checks as surroundings
from holdfast.adapters.local.system import SystemClock
from holdfast.bootstrap.workspace import open_workspace
from tests import privileges
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("CL-1", "ST-4")


def findings(cli: CommandLine, subject: str) -> list[dict[str, Any]]:
    answer = cli("doctor", "--json")
    assert answer.status in (0, 3)
    assert (answer.status == 0) == answer.json["ok"]
    return [one for one in answer.json["findings"] if one["subject"] == subject]


def test_everything_is_looked_at_also_without_a_store(cli: CommandLine) -> None:
    subjects = {one["subject"] for one in json.loads(cli("doctor", "--json").out)["findings"]}
    assert {"store", "permissions", "disk", "file system", "sqlite", "git", "clock"} <= subjects
    cli.save()
    assert findings(cli, "store")[0]["status"] == "ok"
    assert findings(cli, "permissions")[0]["status"] == "ok"
    assert findings(cli, "lock")[0]["finding"] == "no process holds the store's lock"


def test_a_store_open_to_others_is_a_warning_with_the_command_that_closes_it(
    cli: CommandLine,
) -> None:
    cli.save()
    pack = next((Path(cli.json("init")["store"]) / "objects" / "packs").iterdir())
    pack.chmod(0o644)
    (found,) = findings(cli, "permissions")
    assert found["status"] == "warning"
    assert found["cure"] == f"chmod 600 {pack}"
    assert cli("doctor").status == 3


def test_the_process_that_holds_the_store_is_named(cli: CommandLine) -> None:
    cli.save()
    opening = open_workspace(cli.workspace, create=False, purpose="a long job")
    with opening as opened, opened.store.hold():
        (found,) = findings(cli, "lock")
    assert found["status"] == "ok"
    assert f"process {os.getpid()} (a long job) has held the store's lock" in found["finding"]


def test_a_store_that_cannot_be_opened_is_a_problem_with_the_way_out(cli: CommandLine) -> None:
    cli.save()
    store = Path(cli.json("init")["store"])
    (store / "store.json").write_bytes(b"{")
    (found,) = findings(cli, "store")
    assert found["status"] == "problem"
    assert "holdfast repair" in found["cure"]
    assert "✗ store" in cli("doctor").out


def test_leftovers_of_interrupted_work_are_named(cli: CommandLine) -> None:
    cli.save()
    store = Path(cli.json("init")["store"])
    (store / ".journal.new").write_bytes(b"")
    (store / "set-aside").mkdir()
    (store / "suspect").write_text('["index.db"]')
    (store / "purge").write_bytes(b"")
    cures = [one["cure"] for one in findings(cli, "leftovers")]
    assert "finish it: holdfast purge" in cures
    assert any("disk" in cure for cure in cures)
    assert "remove them: holdfast cleanup" in cures
    assert any("budget" in cure for cure in cures)


@pytest.mark.parametrize("place", [".holdfast", "."])
def test_what_a_restore_from_another_store_staged_is_not_ours(cli: CommandLine, place: str) -> None:
    cli.save()
    store = Path(cli.json("init")["store"])
    if place == ".":
        (cli.workspace / ".holdfast").rename(cli.workspace / "aside")
        (cli.workspace / ".holdfast").write_text("somebody's file\n")
    (cli.workspace / place / ".holdfast-staging-0123456789abcdef0123-1").mkdir()
    (found,) = findings(cli, "leftovers")
    assert "no interrupted operations" in found["finding"]
    (cli.workspace / place / f".holdfast-staging-{store.name}-1").mkdir()
    (found,) = findings(cli, "leftovers")
    assert "a restore was interrupted" in found["finding"]


def test_a_copied_workspace_is_distinguished_from_a_moved_one(
    cli: CommandLine, tmp_path: Path
) -> None:
    import shutil

    cli.save()
    copy = tmp_path / "copy"
    shutil.copytree(cli.workspace, copy)
    answer = cli("-C", str(copy), "doctor", "--json")
    (found,) = [one for one in answer.json["findings"] if one["subject"] == "marker"]
    assert found["status"] == "warning"
    assert "copy" in found["finding"]


def test_a_checkpoint_from_the_future_means_that_the_clock_is_wrong(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    monkeypatch.setattr(SystemClock, "now_ns", lambda *_: time.time_ns() - 10**13)
    (found,) = findings(cli, "clock")
    assert found["status"] == "warning"
    assert "in the future" in found["finding"]


def _store(cli: CommandLine) -> Path:
    cli.save()
    return Path(cli.json("init")["store"])


@pytest.mark.requirement("ST-6")
@pytest.mark.parametrize("place", ["stores", "by-path", "home", "the store"])
def test_a_directory_open_to_others_is_reported_though_opening_the_store_closes_it(
    cli: CommandLine, holdfast_home: Path, place: str
) -> None:
    store = _store(cli)
    path = {"home": holdfast_home, "the store": store}.get(place, holdfast_home / place)
    path.chmod(0o755)
    (found,) = findings(cli, "permissions")
    assert found["status"] == "warning"
    assert found["finding"] == f"{path} is open to other users (755)"
    assert found["cure"] == f"chmod 700 {path}"


@pytest.mark.requirement("RL-6")
@pytest.mark.parametrize("place", [".", "lock", "catalog.db", "objects", "../..", "../../stores"])
def test_what_may_not_be_read_is_a_finding_and_no_failure(cli: CommandLine, place: str) -> None:
    path = (_store(cli) / place).resolve()
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        with privileges.none():
            answer = cli("doctor", "--json")
    finally:
        path.chmod(mode)
    assert answer.status == 3
    told = [one for one in answer.json["findings"] if one["subject"] == "permissions"]
    assert [(one["status"], one["cure"]) for one in told] == [("problem", f"chmod u+rwX {path}")]
    assert all(one["cure"] for one in answer.json["findings"] if one["status"] != "ok")


@pytest.mark.requirement("RL-6", "ST-6")
def test_a_link_among_the_files_of_a_store_is_never_to_be_chmodded(
    cli: CommandLine, tmp_path: Path
) -> None:
    lock = _store(cli) / "lock"
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    (found,) = findings(cli, "permissions")
    assert found["status"] == "problem"
    assert str(lock) in found["finding"]
    assert "chmod" not in found["cure"]


def test_a_cure_can_be_run_whatever_the_path(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "it's my home"))
    store = _store(cli)
    (store / "store.json").chmod(0o644)
    (found,) = findings(cli, "permissions")
    subprocess.run(["sh", "-c", found["cure"]], check=True)
    assert findings(cli, "permissions")[0]["status"] == "ok"


@pytest.mark.requirement("ST-3")
@pytest.mark.parametrize(
    ("free_bytes", "status"), [(10 << 20, "problem"), (500 << 20, "warning"), (5 << 30, "ok")]
)
def test_a_disk_that_is_filling_up_is_reported_before_checkpoints_are_refused(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, free_bytes: int, status: str
) -> None:
    cli.save()
    answer = SimpleNamespace(f_bavail=free_bytes >> 12, f_frsize=4096, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _: answer)
    (found,) = findings(cli, "disk")
    assert found["status"] == status
    assert (found["cure"] is None) == (status == "ok")


@pytest.mark.requirement("ST-3")
@pytest.mark.parametrize(
    ("percent", "status"), [(50, "ok"), (85, "warning"), (100, "problem"), (500, "problem")]
)
def test_a_store_that_nears_or_passes_its_budget_is_reported(
    cli: CommandLine, percent: int, status: str
) -> None:
    cli.save()
    cli.json("config", "set", "budget", "1000000000")
    size = cli.json("stats")["store_bytes"]
    cli.json("config", "set", "budget", str(size * 100 // percent))
    (found,) = findings(cli, "budget")
    assert found["status"] == status
    assert status == "ok" or "holdfast cleanup" in found["cure"]


@pytest.mark.requirement("AU-6")
@pytest.mark.parametrize(("watches", "status"), [(8192, "warning"), (1 << 20, "ok")])
def test_a_low_limit_of_inotify_comes_with_the_command_that_raises_it(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watches: int, status: str
) -> None:
    (tmp_path / "max_user_watches").write_text(f"{watches}\n")
    (tmp_path / "max_user_instances").write_text("128\n")
    monkeypatch.setattr(surroundings, "_INOTIFY", tmp_path)
    first, second = findings(cli, "inotify")
    assert (first["status"], second["status"]) == (status, "ok")
    if status == "warning":
        assert first["cure"] == "sudo sysctl fs.inotify.max_user_watches=65536"


@pytest.mark.parametrize(("version", "status"), [("3.40.1", "problem"), ("3.51.3", "ok")])
def test_an_sqlite_that_can_damage_a_log_is_a_problem(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, version: str, status: str
) -> None:
    cli.save()
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    (found,) = findings(cli, "sqlite")
    assert found["status"] == status
    assert version in found["finding"]
    assert status == "ok" or "apsw" in found["cure"]


def test_a_lock_that_is_held_for_very_long_comes_with_a_way_to_end_it(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    with open_workspace(cli.workspace, create=False) as opened, opened.store.hold():
        monkeypatch.setattr(SystemClock, "now_ns", lambda *_: time.time_ns() + 700 * 10**9)
        (found,) = findings(cli, "lock")
    assert found["status"] == "warning"
    assert found["cure"] == f"if it hangs: kill {os.getpid()}"


_HOLD = """
import sys
from pathlib import Path
from holdfast.bootstrap.workspace import open_workspace
with open_workspace(Path(sys.argv[1]), create=False) as opened, opened.store.hold():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.requirement("CL-3")
def test_a_stopped_process_with_the_lock_is_reported_with_what_lets_it_go_on(
    cli: CommandLine,
) -> None:
    cli.save()
    command = [sys.executable, "-c", _HOLD, str(cli.workspace)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            os.kill(holder.pid, signal.SIGSTOP)
            os.waitpid(holder.pid, os.WUNTRACED)  # it has stopped
            (found,) = findings(cli, "lock")
        finally:
            os.kill(holder.pid, signal.SIGCONT)
            holder.communicate(b"\n")
    assert found["status"] == "warning"
    assert f"process {holder.pid}" in found["finding"]
    assert "is stopped" in found["finding"]
    assert f"kill -CONT {holder.pid}" in found["cure"]
    assert findings(cli, "lock")[0]["finding"] == "no process holds the store's lock"
