"""A check of the user's own after a tool call: its failure is reported, or rolled back."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.app.automation.auto_restore import CheckNotRun, run_check
from tests.interfaces.cli.command_line import CommandLine, command
from tests.support.composition import configure
from tests.support.daemon_calls import after, tool_call
from tests.support.daemons import daemon_here, runtime_directory
from tests.support.hooks_here import call_hook
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.requirement("AU-5")

# It passes as long as the price is a number.
CHECK = """#!/bin/sh
echo "$1" >> ../checks
echo "checking with PASSWORD=hunter2"
grep -q 'price = [0-9]' src/app.py || { echo "no price in src/app.py"; exit 3; }
"""


@pytest.fixture(params=["off", "on"], autouse=True)
def behind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Without and with a daemon behind the hooks."""
    monkeypatch.setenv("HOLDFAST_DAEMON", request.param)
    if request.param == "off":
        yield "off"
        return
    with runtime_directory(), daemon_here():
        yield "on"


@pytest.fixture
def checked(project: Path) -> Path:
    script = project.parent / "check.sh"
    script.write_text(CHECK)
    script.chmod(0o700)
    configure(project, check_command=[str(script), "a word"], auto_files=0, auto_interval=0)
    return project


def _checks(project: Path) -> list[str]:
    log = project.parent / "checks"
    return log.read_text().splitlines() if log.exists() else []


def _send(project: Path, event: dict[str, Any]) -> str:
    """The notice to the agent."""
    answer = call_hook("claude-code", event, project)
    assert (answer.status, answer.err) == (0, "")
    said = answer.json.get("hookSpecificOutput", {})
    return str(said.get("additionalContext", ""))


@pytest.mark.parametrize("tool", ["Bash", "Edit"])
def test_a_check_that_fails_takes_the_tool_call_back_if_that_is_wanted(
    tool: str, checked: Path, cli: CommandLine
) -> None:
    configure(checked, restore_on_failure="on")
    before = {**tool_call(checked, "t1", "sed -i s/2/x/ src/app.py"), "tool_name": tool}
    sound = state_of(checked)
    assert _send(checked, before) == ""
    (checked / "src" / "app.py").write_text("price = x\n")
    (checked / "made by it").write_text("new")
    told = _send(checked, after(before))
    assert state_of(checked) == sound
    assert f"rolled the workspace back to before {tool}" in told
    assert "exit status 3" in told
    assert "no price in src/app.py" in told
    assert "hunter2" not in told
    cli.json("undo", "--yes", "--session", "s1")
    assert (checked / "src" / "app.py").read_text() == "price = x\n"


def test_a_check_that_fails_is_just_reported_otherwise(checked: Path) -> None:
    before = tool_call(checked, "t1")
    _send(checked, before)
    (checked / "src" / "app.py").write_text("price = x\n")
    told = _send(checked, after(before))
    assert "failed after Bash (exit status 3)" in told
    assert "took" not in told
    assert (checked / "src" / "app.py").read_text() == "price = x\n"


def test_a_check_that_passes_says_nothing_and_nothing_is_checked_when_nothing_changed(
    checked: Path,
) -> None:
    configure(checked, restore_on_failure="on")
    before = tool_call(checked, "t1")
    _send(checked, before)
    assert _send(checked, after(before)) == ""
    assert _checks(checked) == []
    (checked / "src" / "app.py").write_text("price = 7\n")
    again = tool_call(checked, "t2", "make")
    _send(checked, again)
    (checked / "src" / "app.py").write_text("price = 8\n")
    assert _send(checked, after(again)) == ""
    assert _checks(checked) == ["a word"]
    assert (checked / "src" / "app.py").read_text() == "price = 8\n"


def test_the_same_event_twice_is_checked_once(checked: Path) -> None:
    before = tool_call(checked, "t1")
    _send(checked, before)
    (checked / "src" / "app.py").write_text("price = 8\n")
    _send(checked, after(before))
    _send(checked, after(before))
    assert _checks(checked) == ["a word"]


def test_work_that_has_gone_on_is_not_rolled_back(checked: Path) -> None:
    """The check itself plays the agent that does not wait: its next command is saved meanwhile."""
    configure(checked, restore_on_failure="on")
    before = tool_call(checked, "t1")
    _send(checked, before)
    (checked / "src" / "app.py").write_text("price = x\n")
    event = checked.parent / "next.json"
    event.write_text(json.dumps(tool_call(checked, "t2", "make next")))
    script = checked.parent / "check.sh"
    call = " ".join(command("hook", "claude-code"))
    script.write_text(f"#!/bin/sh\n{call} < {event} > /dev/null\nexit 1\n")
    told = _send(checked, after(before))
    assert "Nothing was rolled back, because other work has happened since" in told
    assert (checked / "src" / "app.py").read_text() == "price = x\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [(["no-such-program-anywhere"], "cannot be run"), (["sleep", "300"], "did not finish")],
)
def test_a_check_that_says_nothing_takes_nothing_back_and_status_tells(
    words: list[str], reason: str, checked: Path, cli: CommandLine
) -> None:
    configure(checked, restore_on_failure="on", check_command=words, check_timeout=0.2)
    before = tool_call(checked, "t1")
    _send(checked, before)
    (checked / "src" / "app.py").write_text("price = x\n")
    assert reason in _send(checked, after(before))
    assert (checked / "src" / "app.py").read_text() == "price = x\n"
    assert reason in cli.json("status")["unprotected"][0]["reason"]


def test_a_project_cannot_say_what_is_run(checked: Path, cli: CommandLine) -> None:
    (checked / ".holdfast" / "config.toml").write_text('check_command = ["touch", "owned"]\n')
    before = cli.json("config", "get", "check_command")
    assert cli("config", "trust").status == 0
    assert cli.json("config", "get", "check_command") == before
    assert before["origin"] == "store"
    assert "cannot be set by a project" in cli("status").err


@pytest.mark.parametrize("value", ['"make test"', "[1]", '[""]', '["\\u0000"]'])
def test_what_is_no_command_is_refused(value: str, project: Path, cli: CommandLine) -> None:
    assert cli("config", "set", "check_command", value).status == 2


def test_nothing_that_a_check_began_is_left_when_its_time_is_over(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    with pytest.raises(CheckNotRun, match="did not finish"):
        run_check(["sh", "-c", "(exec 3<>held; sleep 600) & wait"], tmp_path, 1.0)
    # Of who was killed the system closes the pipe at its own pace; who sleeps keeps it open.
    pause = threading.Event()
    assert any(_nobody_reads(held) or pause.wait(0.01) for _ in range(3_000))


def _nobody_reads(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


def test_a_hook_that_is_asked_to_end_ends_its_check(checked: Path, cli: CommandLine) -> None:
    ready = checked.parent / "ready"
    os.mkfifo(ready)
    configure(checked, check_command=["sh", "-c", f"echo $$ > {ready}; sleep 600"])
    before = tool_call(checked, "t1")
    _send(checked, before)
    (checked / "src" / "app.py").write_text("price = x\n")
    waiting = subprocess.Popen(
        command("hook", "claude-code"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=checked,
    )
    assert waiting.stdin is not None
    waiting.stdin.write(json.dumps(after(before)).encode())
    waiting.stdin.close()
    waiting.stdin = None
    pid = int(ready.read_text())
    waiting.send_signal(signal.SIGTERM)
    out, _ = waiting.communicate()
    assert (waiting.returncode, json.loads(out)) == (0, {})
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("behind", ["off"], indirect=True)
def test_a_signal_at_any_instruction_of_the_wait_for_a_check_ends_it() -> None:
    """An exception while `subprocess` holds its lock would make the next wait an endless one."""
    subprocess.run(
        [sys.executable, "-m", "tests.support.signalled_check"],
        cwd=Path(__file__).resolve().parents[3],
        check=True,
        timeout=120,
    )
