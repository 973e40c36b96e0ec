"""The notice of a restore reaches the agent, whichever process is killed on the way; trouble is in
`status`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.app.automation.problem_log import NAME
from tests.interfaces.cli.command_line import CommandLine, command
from tests.support.daemon_calls import tool_call
from tests.support.daemons import daemon_here
from tests.support.failing_daemon import AFTER_THE_ANSWER, POINTS, dying_daemon
from tests.support.forked_commands import call_hook

pytestmark = [
    pytest.mark.requirement("RB-10", "HK-2"),
    pytest.mark.usefixtures("runtime", "patience"),
]


@pytest.fixture
def restored(project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session whose work was undone, and which does not know it yet."""
    monkeypatch.setenv("HOLDFAST_DAEMON", "off")
    _call(project, "t1")
    (project / "src" / "app.py").write_text("price = 3\n")
    _call(project, "t2")
    cli.json("restore", "HEAD~1", "--session", "s1", "--yes")
    monkeypatch.setenv("HOLDFAST_DAEMON", "on")
    return project


def _call(project: Path, use: str) -> bool:
    """Whether the agent was notified of the restore."""
    answer = call_hook("claude-code", tool_call(project, use, "make"), project)
    assert (answer.status, answer.err) == (0, "")
    return "restored to an earlier state" in json.dumps(answer.json)


@pytest.mark.parametrize("switch", ["on", "off"])
def test_the_agent_of_another_session_is_notified_once_too(
    project: Path, cli: CommandLine, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", switch)

    def told(session: str, use: str) -> list[bool]:
        event = tool_call(project, use, "make") | {"session_id": session}
        answer = call_hook("claude-code", event, project)
        assert (answer.status, answer.err) == (0, "")
        text = json.dumps(answer.json)
        own = "The workspace was restored to an earlier state" in text
        return [own, "Another session of this workspace, s1 (agent claude-code)" in text]

    with daemon_here():
        for session in ("s1", "s2", "s3"):
            told(session, f"{session}-1")
        (project / "src" / "app.py").write_text("price = 3\n")
        told("s1", "s1-2")
        cli.json("restore", "HEAD~1", "--session", "s1", "--yes")
        for session in ("s2", "s3"):
            assert told(session, f"{session}-3") == [False, True]
            assert told(session, f"{session}-4") == [False, False]
        assert told("s1", "s1-3") == [True, False]
        assert told("s4", "s4-1") == [False, False]


def test_a_daemon_tells_once(restored: Path) -> None:
    with daemon_here() as daemon:
        assert [_call(restored, f"t{n}") for n in (3, 4, 5)] == [True, False, False]
        assert daemon.requests == 3


@pytest.mark.parametrize("point", POINTS)
def test_what_a_daemon_was_about_to_tell_when_it_was_killed_is_reported_by_the_hook(
    restored: Path, point: str
) -> None:
    with dying_daemon(point) as daemon:
        assert _call(restored, "t3")
        assert daemon.wait() == -signal.SIGKILL
    with daemon_here():
        assert not _call(restored, "t4")


def test_what_a_daemon_reported_and_could_not_note_is_reported_again(restored: Path) -> None:
    with dying_daemon(AFTER_THE_ANSWER) as daemon:
        assert _call(restored, "t3")
        assert daemon.wait() == -signal.SIGKILL
    with daemon_here():
        assert [_call(restored, f"t{n}") for n in (4, 5)] == [True, False]


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_notice_that_the_hook_could_not_deliver_is_reported_with_the_next_event(
    restored: Path, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", switch)
    with daemon_here():
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run(
                command("hook", "claude-code"),
                input=json.dumps(tool_call(restored, "t3", "make")).encode(),
                stdout=writing,
                cwd=restored,
                check=False,
            )
        finally:
            os.close(writing)
        assert done.returncode == 0
        # The daemon learns of it when it closes the connection, which no client waits for.
        while not (told := _call(restored, "t4")):
            assert switch == "on"
        assert told
        assert not _call(restored, "t5")


def _log(holdfast_home: Path) -> list[Any]:
    return [json.loads(line) for line in (holdfast_home / NAME).read_text().splitlines()]


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_conversation_that_cannot_be_recorded_is_in_the_log_once_and_in_status(
    project: Path,
    cli: CommandLine,
    holdfast_home: Path,
    switch: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", switch)
    with daemon_here():
        _call(project, "t1")
        store = next((holdfast_home / "stores").iterdir())
        (store / "story.db").write_bytes(b"not a database" * 1000)
        prompt = {"session_id": "s1", "cwd": str(project), "hook_event_name": "UserPromptSubmit"}
        for text in ("one", "two"):
            (project / "src" / "app.py").write_text(text)
            call_hook("claude-code", prompt | {"prompt": text}, project)
    (entry,) = _log(holdfast_home)
    assert entry["message"].startswith("the conversation was not recorded: ")
    (store / "story.db").unlink()
    status = cli.json("status")
    assert status["unprotected"] == []
    assert [one["event"] for one in status["unrecorded"]] == ["UserPromptSubmit"]
    assert "agent event not recorded in the last day" in cli("status").out
    assert cli.json("log", "--session", "s1")[0]["kind"] == "message"


def test_a_notice_that_cannot_be_read_is_in_the_log_and_keeps_nothing_from_being_saved(
    restored: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    store = next((holdfast_home / "stores").iterdir())
    (store / "story.db").write_bytes(b"not a database" * 1000)
    assert not _call(restored, "t3")
    assert "could not notify the agent of the rollback" in _log(holdfast_home)[-1]["message"]
    assert cli.json("log", "--session", "s1")[0]["reasoning"] == "Before Bash: make"
