"""Settings that others edit while we do, before or after, lose nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.agent_setup import install_plan, installation
from holdfast.interfaces.agent_setup.settings_file import read_settings
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hook_process import recorded

pytestmark = pytest.mark.requirement("HK-1")

LEFT = 3
REFUSED = 5
BEFORE, AFTER = b'{\n  "model": "opus"\n}\n', b'{\n  "model": "mine"\n}\n'


@pytest.fixture
def settings(project: Path) -> Path:
    place = project / ".claude" / "settings.json"
    place.parent.mkdir()
    place.write_bytes(BEFORE)
    return place


def edit_unseen(place: Path) -> None:
    """As an editor does within one tick of the clock: same file, same size, same time."""
    times = (place.stat().st_atime_ns, place.stat().st_mtime_ns)
    place.write_bytes(AFTER)
    os.utime(place, ns=times)


def test_an_edit_after_the_plan_is_not_overwritten(
    settings: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "try_hook", lambda *_: edit_unseen(settings))
    answer = cli("--json", "install", "claude-code")
    assert answer.status == REFUSED
    assert "changed in the meantime" in answer.error["message"]
    assert settings.read_bytes() == AFTER


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_an_edit_while_it_is_planned_is_not_overwritten(
    verb: str, settings: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb == "uninstall":
        cli.json("install", "claude-code")
    mine = settings.read_bytes().replace(b"opus", b"mine")

    def read(place: Path) -> tuple[str | None, os.stat_result | None]:
        found = read_settings(place)
        if place == settings:
            settings.write_bytes(mine)
        return found

    monkeypatch.setattr(install_plan, "read_settings", read)
    answer = cli("--json", verb, "claude-code")
    assert answer.status == REFUSED, answer
    assert settings.read_bytes() == mine


def test_a_file_of_another_user_or_group_stays_theirs(settings: Path, cli: CommandLine) -> None:
    # Only root can give files away; others can to a group that they are in.
    root = os.geteuid() == 0
    owner = (12345, 23456) if root else (os.geteuid(), os.getgroups()[-1])
    os.chown(settings, *owner)
    settings.chmod(0o640)
    cli.json("install", "claude-code")
    found = settings.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (*owner, 0o640)


@pytest.mark.parametrize(
    "command",
    [
        "./guard.sh && {}",
        "tee log | {}",
        "HOLDFAST_HOME=/x {}",
        "{}; ./after.sh",
        "{} > /tmp/log",
        "{} || ./failed.sh",
        "sh -c '{}'",
    ],
)
@pytest.mark.parametrize("program", ["holdfast", "/opt/py/bin/python -m holdfast"])
def test_what_another_process_added_to_a_command_stays_and_is_named(
    command: str, program: str, settings: Path, cli: CommandLine
) -> None:
    mine = command.format(f"{program} hook claude-code")
    handler = {"type": "command", "command": mine}
    before = json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}}, indent=2).encode()
    settings.write_bytes(before)
    cli.json("install", "claude-code")
    commands = [
        handler["command"]
        for group in json.loads(settings.read_text())["hooks"]["Stop"]
        for handler in group["hooks"]
    ]
    assert commands[0] == mine
    assert len(commands) == 2
    answer = cli("--json", "uninstall", "claude-code")
    assert answer.status == LEFT
    assert settings.read_bytes() == before
    assert ascii(mine) in answer.json["notes"][0]


@pytest.mark.parametrize(
    "program",
    [
        "holdfast",
        "/usr/local/bin/holdfast",
        "'/a b/python' -m holdfast",
        "/p/python -P -m holdfast",
    ],
)
def test_a_command_of_holdfast_is_known_however_the_program_is_called(
    program: str, settings: Path, cli: CommandLine
) -> None:
    handler = {"type": "command", "command": f"{program} hook claude-code", "timeout": 5}
    settings.write_text(json.dumps({"a": 1, "hooks": {"Stop": [{"hooks": [handler]}]}}))
    cli.json("uninstall", "claude-code")
    assert json.loads(settings.read_text()) == {"a": 1}


@pytest.fixture
def by_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is where `holdfast` is not in the PATH."""
    found: Callable[[str], Any] = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "holdfast" else found(name))


@pytest.mark.requirement("HK-2")
@pytest.mark.usefixtures("by_interpreter")
def test_modules_of_the_project_are_not_run_by_the_hook(project: Path, cli: CommandLine) -> None:
    for name in ("json", "socket", "struct", "holdfast", "pathlib", "apsw"):
        (project / f"{name}.py").write_text("raise SystemExit('code of the project')\n")
    cli.json("install", "claude-code")
    settings = json.loads((project / ".claude" / "settings.json").read_text())
    command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    done = subprocess.run(
        ["sh", "-c", command],
        input=json.dumps(recorded("claude-code", project, "rm -rf src")[3]).encode(),
        capture_output=True,
        cwd=project,
        check=False,
    )
    assert done.returncode == 0
    assert b"code of the project" not in done.stdout + done.stderr
    assert [made["kind"] for made in cli.json("log")] == ["risky", "initial"]


@pytest.mark.requirement("MC-2")
@pytest.mark.usefixtures("by_interpreter")
def test_modules_of_the_project_are_not_run_by_the_server(project: Path, cli: CommandLine) -> None:
    (project / "json.py").write_text("raise SystemExit('code of the project')\n")
    cli.json("install", "claude-code", "--mcp")
    entry = json.loads((project / ".mcp.json").read_text())["mcpServers"]["holdfast"]
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=project,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    cli.json("uninstall", "claude-code")
    assert not (project / ".mcp.json").exists()
