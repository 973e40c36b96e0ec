"""Whatever happens, the agent gets status 0 and an answer it takes for a yes; the log tells."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.app.automation.problem_log import MOST_BYTES, NAME
from holdfast.domain.agent_events import EventKind
from holdfast.interfaces.agents import AGENTS, agent_named
from holdfast.interfaces.hooks.runtime_files import problem_log
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hook_process import HookAnswer, call_hook, recorded

pytestmark = pytest.mark.requirement("HK-2")

YES: dict[str, Any] = {agent: {} for agent in AGENTS} | {"cline": {"cancel": False}}


def _is_a_yes(agent: str, answer: HookAnswer) -> bool:
    if agent == "goose":
        return (answer.status, answer.out) == (0, "")
    return answer.status == 0 and answer.json == YES[agent]


def _is_a_yes_with_words(agent: str, answer: HookAnswer) -> bool:
    """The agent continues, and gets the reason why nothing was saved, if it accepts text."""
    hears = EventKind.BEFORE_TOOL in agent_named(agent).carries
    if not hears:
        return _is_a_yes(agent, answer)
    said = answer.json
    told = {"hookSpecificOutput", "systemMessage", "contextModification", "context", "notice"}
    told |= {"additional_context", "user_message"}
    rest = {key: value for key, value in said.items() if key not in told}
    decides = "permissionDecision" in said.get("hookSpecificOutput", {})
    return answer.status == 0 and rest == YES[agent] and not decides and "Holdfast" in answer.out


def _log(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / NAME).read_text().splitlines()]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "event",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe\x00", b'{"a": 1}', b"[" * 100_000],
    ids=["empty", "cut", "list", "null", "text", "bytes", "unknown", "deep"],
)
def test_an_event_that_makes_no_sense_is_a_yes(
    agent: str, event: bytes, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.interfaces.cli.command_line import run

    monkeypatch.chdir(project)
    answer = run("hook", agent, stdin=event.decode("latin-1"))
    assert _is_a_yes(agent, HookAnswer(answer.status, answer.out, answer.err))


@pytest.mark.parametrize(
    "odd",
    [
        {"tool_use_id": "\ud800"},
        {"cwd": "\ud800"},
        {"tool_name": "Edit", "tool_input": {"file_path": "/etc/\ud800/x"}},
        {"tool_name": "Write", "tool_input": {"file_path": "/tmp/\0/x"}},
        {"tool_input": {"command": "rm -rf \ud800"}},
    ],
    ids=["id", "directory", "edited path", "NUL in a path", "command"],
)
def test_an_event_with_half_a_character_is_protected(
    odd: dict[str, Any], project: Path, cli: CommandLine
) -> None:
    event = {**recorded("claude-code", project, "rm -rf src")[3], **odd}
    assert "not protecting" not in call_hook("claude-code", event, project).out
    made = cli.json("log", "--session", event["session_id"])
    assert [one["kind"] for one in made][1:] == ["initial"]


def test_an_event_that_cannot_be_read_is_reported_in_the_workspace_where_the_hook_ran(
    project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.interfaces.cli.command_line import run

    cli("checkpoint", "begin")
    monkeypatch.chdir(project / "src")
    run("hook", "claude-code", stdin="{ not JSON")
    assert "the event is not JSON" in cli("status").out
    run("hook", "", stdin="{}")
    assert "\n  holdfast hook: unknown agent: ''" in cli("status").out


@pytest.mark.parametrize("agent", ["", "nobody", "claude-code --json", "--version=1"])
def test_an_unknown_agent_is_answered(agent: str, project: Path, holdfast_home: Path) -> None:
    before = recorded("claude-code", project, "rm -rf src")[3]
    answer = call_hook(agent, before, project)
    assert (answer.status, answer.json) == (0, {})
    assert "unknown agent" in _log(holdfast_home)[-1]["message"]


def test_help_is_shown_to_people(cli: CommandLine) -> None:
    answer = cli("hook", "--help")
    assert answer.status == 0
    assert "holdfast hook AGENT" in answer.out


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_place_for_the_store_the_agent_goes_on_and_is_notified(
    agent: str, project: Path, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    answer = call_hook(
        agent,
        recorded(agent, project, "rm -rf src")[3],
        project,
        environment={"HOLDFAST_HOME": str(blocked / "home"), "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert _is_a_yes_with_words(agent, answer)
    assert "not protected" in answer.err  # there is no log either


def test_what_was_not_protected_is_in_the_log_and_in_status(
    project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    cli.save()
    before = recorded("claude-code", project, "rm -rf src")[3]
    store = next((holdfast_home / "stores").iterdir())
    os.rename(store / "catalog.db", store / "catalog.away")
    assert _is_a_yes_with_words("claude-code", call_hook("claude-code", before, project))
    os.rename(store / "catalog.away", store / "catalog.db")
    log = holdfast_home / NAME
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    status = cli.json("status")
    assert [entry["tool"] for entry in status["unprotected"]] == ["Bash"]
    assert "catalog.db" in status["unprotected"][0]["reason"]
    shown = cli("status").out
    assert "1 agent event without a checkpoint in the last day" in shown
    assert "claude-code PreToolUse Bash" in shown


def test_the_problems_of_another_workspace_are_not_reported_here(
    project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    cli.save()
    call_hook("claude-code", recorded("claude-code", Path.home(), "rm -rf src")[3], project)
    assert len(_log(holdfast_home)) == 1
    assert cli.json("status")["unprotected"] == []


def test_the_home_directory_is_not_saved_and_the_log_says_so(
    project: Path, holdfast_home: Path
) -> None:
    event = recorded("claude-code", Path.home(), "rm -rf src")[3]
    assert _is_a_yes_with_words("claude-code", call_hook("claude-code", event, project))
    assert _log(holdfast_home)[-1]["code"] == "workspace_refused"


def test_a_payload_of_100_megabytes_is_read_to_its_end_and_protected(
    project: Path, cli: CommandLine
) -> None:
    head = {
        "session_id": "big",
        "cwd": str(project),
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
    }
    event = json.dumps(head).encode()[:-1]
    event += b', "tool_input": {"file_path": "a.txt", "content": "' + b"x" * 100_000_000
    event += b'"}, "tool_use_id": "toolu_big"}'
    assert _is_a_yes("claude-code", call_hook("claude-code", event, project))
    made = cli.json("log", "--session", "big")[0]
    assert (made["kind"], made["reasoning"]) == ("tool", "Before Write: a.txt")


def test_an_event_that_is_cut_off_is_still_protected(project: Path, cli: CommandLine) -> None:
    whole = json.dumps(recorded("claude-code", project, "rm -rf src")[3]).encode()
    assert _is_a_yes("claude-code", call_hook("claude-code", whole[:-20], project))
    kinds = [made["kind"] for made in cli.json("log")]
    assert kinds == ["risky", "initial"]


def test_a_reader_that_went_away_is_no_failure(project: Path, cli: CommandLine) -> None:
    import subprocess

    from tests.interfaces.cli.command_line import command

    event = json.dumps(recorded("claude-code", project, "rm -rf src")[3]).encode()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("hook", "claude-code"), input=event, stdout=writing, cwd=project, check=False
    )
    os.close(writing)
    assert done.returncode == 0
    assert [made["kind"] for made in cli.json("log")] == ["risky", "initial"]


def test_the_log_is_bounded(holdfast_home: Path, project: Path) -> None:
    log = holdfast_home / NAME
    log.write_bytes(b"x" * (MOST_BYTES + 1))
    event = recorded("claude-code", Path.home(), "true")[3]
    call_hook("claude-code", event, project)
    assert log.stat().st_size < 2_000
    assert (holdfast_home / f"{NAME}.1").stat().st_size == MOST_BYTES + 1
    assert len(_log(holdfast_home)) == 1


def test_a_log_that_is_a_link_or_a_pipe_is_not_written(
    holdfast_home: Path, project: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    log = holdfast_home / NAME
    event = recorded("claude-code", Path.home(), "true")[3]
    log.symlink_to(victim)
    assert _is_a_yes_with_words("claude-code", call_hook("claude-code", event, project))
    log.unlink()
    os.mkfifo(log)
    assert _is_a_yes("claude-code", call_hook("claude-code", event, project))
    assert victim.read_text() == "mine"


def test_lines_of_the_log_that_are_damaged_are_passed_over(
    holdfast_home: Path, project: Path
) -> None:
    from datetime import UTC, datetime

    (holdfast_home / NAME).write_text('{"at": 1}\n[]\nnot json\n{"at": "2026-01-01", "x": 2}\n')
    assert problem_log(os.environ).problems_of(project, datetime.min.replace(tzinfo=UTC)) == []


@pytest.mark.linux
def test_a_hook_that_is_asked_to_end_is_a_yes_and_tells_what_it_left(
    project: Path, holdfast_home: Path, cli: CommandLine
) -> None:
    """An agent ends a hook that takes too long: here one that waits for the store."""
    import signal
    import subprocess

    from holdfast.bootstrap.workspace import open_workspace
    from tests.interfaces.cli.command_line import command

    cli.save()
    event = json.dumps(recorded("claude-code", project, "rm -rf src")[3]).encode()
    with open_workspace(project, create=False) as opened, opened.store.hold():
        waiting = subprocess.Popen(
            command("hook", "claude-code"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=project,
        )
        assert waiting.stdin is not None
        waiting.stdin.write(event)
        waiting.stdin.close()
        waiting.stdin = None
        while f"/{opened.store.directory.name}/" not in _open_files(waiting.pid):
            assert waiting.poll() is None
        waiting.send_signal(signal.SIGTERM)
        out, _ = waiting.communicate()
    assert (waiting.returncode, "stopped by signal" in out.decode()) == (0, True)
    assert "permissionDecision" not in out.decode()
    assert [entry["tool"] for entry in cli.json("status")["unprotected"]] == ["Bash"]


def _open_files(pid: int) -> str:
    """Where the process has got to: what it has opened so far."""
    names = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            names.append(os.readlink(entry))
        except OSError:
            continue
    return "\n".join(names)
