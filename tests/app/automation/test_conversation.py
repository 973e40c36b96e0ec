"""The conversation around hooks: the position of a checkpoint in it, and the notices to the
agent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.agent_events import AgentEvent, EventKind
from tests.interfaces.cli.command_line import CommandLine
from tests.support.agent_events import handle
from tests.support.hooks_here import call_hook
from tests.support.transcripts import claude_line


def _send(project: Path, event: dict[str, Any], agent: str = "claude-code") -> Any:
    answer = call_hook(agent, {"session_id": "s1", "cwd": str(project)} | event, project)
    assert (answer.status, answer.err) == (0, "")
    return json.loads(answer.out or "{}")


def _before_edit(use: str, **more: Any) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": "src/app.py"},
        "tool_use_id": use,
    } | more


def _shown(cli: CommandLine, reference: str = "HEAD") -> Any:
    return cli.json("show", reference, "--session", "s1")


@pytest.mark.requirement("SE-2")
def test_a_checkpoint_knows_the_message_and_the_tool_use_it_belongs_to(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_bytes(claude_line("u1", "make it cheaper"))
    more = {"transcript_path": str(transcript)}
    _send(project, {"hook_event_name": "SessionStart", "source": "startup"} | more)
    with transcript.open("ab") as file:
        file.write(claude_line("u2", [{"type": "text", "text": "I will"}], role="assistant"))
    _send(project, _before_edit("toolu_7", **more))
    shown = _shown(cli)
    assert (shown["message_index"], shown["tool_use_id"]) == (1, "toolu_7")
    assert shown["message"] == {"role": "assistant", "content": "I will"}


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize("trouble", ["missing", "a directory", "not JSON", "half a line"])
def test_a_transcript_that_cannot_be_read_keeps_nothing_from_being_saved(
    project: Path, cli: CommandLine, tmp_path: Path, trouble: str
) -> None:
    transcript = tmp_path / "session.jsonl"
    if trouble == "a directory":
        transcript.mkdir()
    elif trouble != "missing":
        transcript.write_bytes(b"\xff\x00{{{\n" if trouble == "not JSON" else b'{"type": "us')
    _send(project, _before_edit("t1", transcript_path=str(transcript)))
    assert _shown(cli)["reasoning"] == "Before Edit: src/app.py"


@pytest.mark.requirement("SE-2", "SE-3")
def test_messages_of_an_agent_without_a_transcript_are_recorded(
    project: Path, cli: CommandLine
) -> None:
    message = {"hook_event_name": "BeforeAgent", "prompt": "make it cheaper"}
    _send(project, message, "gemini")
    session = cli.json("status")["session_id"]
    assert cli.json("log", "--session", session)[0]["kind"] == "message"
    event = {
        "hook_event_name": "BeforeTool",
        "tool_name": "write_file",
        "tool_input": {"file_path": "src/app.py"},
    }
    _send(project, event, "gemini")
    shown = cli.json("show", "HEAD", "--session", session)
    assert shown["message"] == {"role": "user", "content": "make it cheaper"}


@pytest.mark.requirement("HK-2", "SE-2")
@pytest.mark.parametrize("trigger", ["on", "off"])
def test_a_message_that_is_delivered_twice_is_recorded_once(
    trigger: str, project: Path, cli: CommandLine
) -> None:
    cli.json("config", "set", "auto_message", trigger)
    _send(project, {"hook_event_name": "sessionStart", "cursor_version": "2"}, "cursor")
    message = {"hook_event_name": "beforeSubmitPrompt", "cursor_version": "2", "prompt": "go on"}
    for turn in ("g1", "g2"):  # the same words again are another message
        for called in ("cursor", "claude-code"):
            _send(project, message | {"generation_id": turn}, called)
    assert _recorded(project) == ["go on", "go on"]


@pytest.mark.requirement("HK-2", "SE-2")
def test_messages_without_ids_are_the_same_when_typed_too_fast_for_a_person(project: Path) -> None:
    message = AgentEvent(
        "gemini", "BeforeAgent", EventKind.MESSAGE, "s1", prompt="go on", cwd=str(project)
    )
    for received_s in (100, 101, 110):
        handle(message._replace(received_ns=received_s * 1_000_000_000))
    assert _recorded(project) == ["go on", "go on"]


@pytest.mark.requirement("SE-2")
def test_a_message_before_the_agent_begins_its_transcript_is_recorded_once(
    project: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "s1.jsonl"
    known = {"transcript_path": str(transcript)}
    said_at = datetime.now(UTC).isoformat()
    _send(project, {"hook_event_name": "UserPromptSubmit", "prompt": "go on", **known})
    assert _recorded(project) == ["go on"]
    lines = [
        claude_line("u1", "go on", timestamp=said_at),
        claude_line("a1", "done", role="assistant", timestamp=said_at),
    ]
    transcript.write_bytes(b"".join(lines))
    _send(project, _before_edit("t1", **known))
    assert _recorded(project) == ["go on", "done"]
    # The same words in a file that goes on are another message.
    lines.append(claude_line("u2", "go on", timestamp=said_at))
    transcript.write_bytes(b"".join(lines))
    _send(project, _before_edit("t2", **known))
    assert _recorded(project) == ["go on", "done", "go on"]


def _recorded(project: Path) -> list[str]:
    with SessionCheckpointer(project, "s1") as session:
        return [message.content for message in session.messages()]


@pytest.mark.requirement("SE-2", "SE-3")
def test_what_gemini_puts_before_a_message_is_not_taken_for_it(
    project: Path, cli: CommandLine
) -> None:
    said = "<hook_context>one\ntwo</hook_context>\n\n<hook_context>x</hook_context>\n\ngo on"
    _send(project, {"hook_event_name": "BeforeAgent", "prompt": said}, "gemini")
    assert _recorded(project) == ["go on"]
    assert _shown(cli)["reasoning"] == "Before user message: go on"


@pytest.mark.requirement("RB-10")
def test_gemini_is_notified_after_a_tool_since_its_model_sees_no_answer_before_one(
    project: Path, cli: CommandLine
) -> None:
    tool = {"tool_name": "write_file", "tool_input": {"file_path": "src/app.py"}}
    _send(project, tool | {"hook_event_name": "BeforeTool"}, "gemini")
    (project / "src" / "app.py").write_text("price = 3\n")
    _send(project, tool | {"hook_event_name": "BeforeTool"}, "gemini")
    cli("restore", "HEAD~1", "--session", "s1", "--yes")
    assert _send(project, tool | {"hook_event_name": "BeforeTool"}, "gemini") == {}
    after = tool | {"hook_event_name": "AfterTool", "tool_response": {"llmContent": "done"}}
    said = _send(project, after, "gemini")["hookSpecificOutput"]
    assert said["hookEventName"] == "AfterTool"
    assert "restored to an earlier state" in said["additionalContext"]
    assert _send(project, after, "gemini") == {}


@pytest.mark.requirement("RB-10")
def test_after_a_restore_the_next_event_tells_the_agent_once(
    project: Path, cli: CommandLine
) -> None:
    _send(project, _before_edit("t1"))
    (project / "src" / "app.py").write_text("price = 3\n")
    _send(project, _before_edit("t2"))
    cli("restore", "HEAD~1", "--session", "s1", "--yes")
    told = json.dumps(_send(project, _before_edit("t3")))
    assert "Before Edit: src/app.py" in told
    assert "src/app.py" in told
    assert "additionalContext" in told
    assert "additionalContext" not in json.dumps(_send(project, _before_edit("t4")))


@pytest.mark.requirement("GT-3")
def test_accepted_work_is_committed_with_what_the_person_asked_for(
    project: Path, cli: CommandLine
) -> None:
    asked = "make it cheaper, since nobody buys anything at this price any more"
    _send(project, {"hook_event_name": "UserPromptSubmit", "prompt": "hello"})
    _send(project, {"hook_event_name": "UserPromptSubmit", "prompt": asked})
    _send(project, _before_edit("t1"))
    (project / "src" / "app.py").write_text("price = 0\n")
    _send(project, _before_edit("t2"))
    (project / "src" / "app.py").write_text("price = 1\nsale = True\n")
    _send(project, {"hook_event_name": "UserPromptSubmit", "prompt": "now something else"})
    planned = cli.json("accept", "--session", "s1", "--dry-run")
    subject, _, body = planned["message"].partition("\n")
    assert subject == asked
    assert "Before" not in planned["message"]
    assert "something else" not in body


@pytest.mark.requirement("SE-2", "SE-3")
@pytest.mark.parametrize("written", ["before the hook", "after the hook"])
def test_a_message_of_a_transcript_has_the_checkpoint_that_its_hook_made(
    project: Path, cli: CommandLine, tmp_path: Path, written: str
) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_bytes(claude_line("u0", "hello"))
    more = {"transcript_path": str(transcript)}
    _send(project, {"hook_event_name": "SessionStart", "source": "startup"} | more)
    line = claude_line("u1", "make it cheaper", timestamp=datetime.now(UTC).isoformat())
    if written == "before the hook":
        transcript.write_bytes(transcript.read_bytes() + line)
    _send(project, {"hook_event_name": "UserPromptSubmit", "prompt": "make it cheaper"} | more)
    made = cli.json("log", "--session", "s1")[0]
    if written == "after the hook":
        transcript.write_bytes(transcript.read_bytes() + line)
    _send(project, _before_edit("t1", **more))
    events = cli.json("log", "--messages", "--session", "s1")["events"]
    said = {e["content"]: e.get("checkpoint_id") for e in events if e["type"] == "message"}
    assert said == {"hello": None, "make it cheaper": made["id"]}
