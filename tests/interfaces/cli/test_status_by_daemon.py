"""`holdfast status` beside a daemon that watches the workspace: the same answer, without a scan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.daemon.client import ask
from holdfast.interfaces.daemon.hook_client import seen_from_here
from tests.interfaces.cli.command_line import CommandLine
from tests.support.agent_project import runtime as runtime
from tests.support.daemons import daemon_here, save_by_daemon

pytestmark = [pytest.mark.requirement("PF-7", "AU-6"), pytest.mark.usefixtures("runtime")]

COMMAND = """
import sys
from holdfast.engine.engine import Engine
from holdfast.interfaces.cli.commands import status
from holdfast.interfaces.cli.main import main
from holdfast.interfaces.daemon import client
client._CONNECT_S = status._DAEMON_S = 60.0
real, scans = Engine.scan, []
Engine.scan = lambda *given: scans.append(given) or real(*given)
assert main(["status", "--skipped", "--json", "-C", sys.argv[1]]) == 0
print(len(scans))
"""


def _status(project: Path) -> tuple[dict[str, Any], int]:
    """What the command says in a process of its own, and how often it scanned the workspace."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, str(project)], capture_output=True, text=True, check=True
    )
    said, scans = done.stdout.splitlines()
    return json.loads(said), int(scans)


def _change(project: Path) -> None:
    (project / "src" / "app.py").write_text("def main():\n    return 2\n")
    (project / "README.md").unlink()
    (project / "new").mkdir()
    (project / "new" / "file").write_text("new\n")
    (project / "new" / ".env").write_text("ignored\n")
    os.mkfifo(project / "new" / "pipe")


def _asked(project: Path, seen: bytes) -> dict[str, Any]:
    (found,) = ask("status", {"workspace": str(project), "seen": seen.decode()})["workspaces"]
    return dict(found)


@pytest.mark.parametrize("changed", [False, True])
def test_a_daemon_that_watches_says_what_a_scan_would(
    project: Path, cli: CommandLine, changed: bool
) -> None:
    with daemon_here():
        save_by_daemon(project)
        if changed:
            _change(project)
        told, scans = _status(project)
        assert scans == 0
        assert told.pop("watch")["watched"]
        alone = cli.process(
            "status", "--skipped", "--json", environment={"XDG_RUNTIME_DIR": "/nowhere"}
        ).json
    assert alone.pop("watch") is None
    assert told == alone
    expected = {"README.md", "new/file", "src/app.py"} if changed else set()
    assert {one["path"] for one in told["changes"]} == expected


def test_in_doubt_the_command_looks_at_every_file_itself(project: Path) -> None:
    with daemon_here() as daemon:
        save_by_daemon(project)
        _change(project)
        (kept,) = daemon.workspaces.all()
        kept.watch.doubt("an event was lost")
        told, scans = _status(project)
    assert scans == 1
    assert len(told["changes"]) == 3


def test_a_client_that_may_see_another_directory_there_has_to_look_itself(project: Path) -> None:
    with daemon_here():
        save_by_daemon(project)
        here = seen_from_here(str(project))
        assert _asked(project, here)["scan"]["files"] == 6
        assert "scan" not in _asked(project, here + b"0")


def test_nobody_waits_for_a_workspace_that_is_in_use(project: Path) -> None:
    with daemon_here() as daemon:
        save_by_daemon(project)
        with daemon.workspaces.use(str(project)):
            assert "scan" not in _asked(project, seen_from_here(str(project)))
            assert _status(project)[1] == 1
        assert _status(project)[1] == 0
