"""`holdfast doctor`: what is wrong around a store, with the cure."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.bootstrap import open_workspace
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
    assert findings(cli, "lock")[0]["finding"] == "nobody holds the store"


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
    with opening as opened, opened.store.exclusive():
        (found,) = findings(cli, "lock")
    assert found["status"] == "ok"
    assert f"process {os.getpid()} (a long job) holds the store" in found["finding"]


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
    assert "holdfast cleanup" in cures
    assert any("budget" in cure for cure in cures)


def test_a_copied_workspace_is_told_from_a_moved_one(cli: CommandLine, tmp_path: Path) -> None:
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
    from holdfast.store.system import SystemClock

    monkeypatch.setattr(SystemClock, "now_ns", lambda *_: time.time_ns() - 10**13)
    (found,) = findings(cli, "clock")
    assert found["status"] == "warning"
    assert "in the future" in found["finding"]
