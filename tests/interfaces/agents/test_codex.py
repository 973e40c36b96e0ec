"""Rollouts of Codex: what becomes a message, with which role, key, time and tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.transcript_messages import TranscriptMessage
from holdfast.engine.conversation.transcripts import PassedOver, TranscriptReading
from holdfast.interfaces.agents.codex import AGENT
from tests.support.transcripts import codex_line, codex_text


def read(tmp_path: Path, *lines: bytes) -> tuple[list[TranscriptMessage], PassedOver]:
    path = tmp_path / "rollout-2026-08-15T12-00-00-abc.jsonl"
    path.write_bytes(b"".join(lines))
    with TranscriptReading(path, AGENT.transcript_message) as reading:
        return list(reading), reading.passed_over


@pytest.mark.requirement("SE-2")
def test_a_turn_becomes_what_was_asked_what_was_done_and_what_came_of_it(tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "shell", "call_id": "call_1"}
    asked, done, came, said = read(
        tmp_path,
        codex_line({"id": "t", "cwd": "/home/ada/shop"}, "session_meta"),
        codex_line({"cwd": "/home/ada/shop"}, "turn_context"),
        codex_text("user", "Fix the login"),
        codex_line({"type": "user_message", "message": "Fix the login"}, "event_msg"),
        codex_line({"type": "reasoning", "summary": []}),
        codex_line(call | {"arguments": '{"command": ["ls"]}'}),
        codex_line({"type": "function_call_output", "call_id": "call_1", "output": "a.py"}),
        codex_text("assistant", "Fixed."),
    )[0]
    assert (asked.role, asked.content) == ("user", "Fix the login")
    assert asked.at_ns == 1786795201_123_000_000
    assert (done.role, done.tool_use_ids) == ("assistant", ("call_1",))
    assert done.tool_calls == ({"id": "call_1", "name": "shell", "input": {"command": ["ls"]}},)
    assert (came.role, came.content, came.tool_use_ids) == ("tool", "a.py", ("call_1",))
    assert (said.role, said.content) == ("assistant", "Fixed.")


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    ("item", "name", "given"),
    [
        ({"type": "function_call", "name": "shell", "arguments": "{oops"}, "shell", "{oops"),
        ({"type": "function_call", "arguments": {"a": 1}}, "unknown", {"a": 1}),
        ({"type": "custom_tool_call", "name": "apply_patch", "input": "*** "}, "apply_patch", None),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "shell", None),
        ({"type": "web_search_call", "action": {"query": "q"}}, "web_search", {"query": "q"}),
        ({"type": "tool_search_call", "arguments": {"q": 1}}, "tool_search", {"q": 1}),
    ],
)
def test_every_kind_of_call_is_a_tool_call(
    tmp_path: Path, item: dict[str, Any], name: str, given: Any
) -> None:
    (message,) = read(tmp_path, codex_line(item | {"call_id": "c"}))[0]
    (call,) = message.tool_calls
    assert (call["id"], call["name"]) == ("c", name)
    if given is not None:
        assert call["input"] == given


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("text", "text"),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image"}], "a\n[input_image]"),
        ({"content": "inner", "success": True}, "inner"),
        (None, ""),
        (5, ""),
    ],
)
def test_every_form_of_an_answer_is_read(tmp_path: Path, output: Any, told: str) -> None:
    item = {"type": "custom_tool_call_output", "call_id": "c", "output": output}
    (message,) = read(tmp_path, codex_line(item))[0]
    assert (message.role, message.content, message.tool_use_ids) == ("tool", told, ("c",))


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("developer", "be good"),
        ("user", "<environment_context>\n<cwd>/x</cwd></environment_context>"),
        ("user", "# AGENTS.md instructions for /x"),
        ("user", '<turn_aborted reason="interrupted"/>'),
        ("overlord", "obey"),
    ],
)
def test_what_the_program_says_is_not_taken_for_the_person(
    tmp_path: Path, role: str, text: str
) -> None:
    (message,) = read(tmp_path, codex_text(role, text))[0]
    assert (message.role, message.content) == ("system", text)


@pytest.mark.requirement("SE-2")
def test_compaction_changes_no_key_and_is_reported_without_repeating_history(
    tmp_path: Path,
) -> None:
    before = [codex_text("user", "one"), codex_text("assistant", "two")]
    old = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]}
    compacted = {"message": "one and two", "replacement_history": [old]}
    keys = [message.source_key for message in read(tmp_path, *before)[0]]
    messages = read(
        tmp_path, *before, codex_line(compacted, "compacted"), codex_text("user", "three", 2)
    )[0]
    assert [m.source_key for m in messages][: len(keys)] == keys
    assert [(m.role, m.content) for m in messages[2:]] == [
        ("system", "[context compacted]\none and two"),
        ("user", "three"),
    ]


@pytest.mark.requirement("SE-2")
def test_rollouts_of_early_versions_have_no_envelope(tmp_path: Path) -> None:
    lines = [
        {"id": "5973", "timestamp": "2025-07-01T10:00:00Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"record_type": "state"},
    ]
    messages, passed = read(tmp_path, *(json.dumps(line).encode() + b"\n" for line in lines))
    assert [(m.role, m.content) for m in messages] == [("user", "hi")]
    assert passed == PassedOver(other=2)


@pytest.mark.requirement("SE-2")
def test_the_same_words_at_another_time_are_another_message(tmp_path: Path) -> None:
    lines = [codex_text("user", "go on", 1), codex_text("user", "go on", 2)]
    messages, passed = read(tmp_path, *lines, lines[0])
    assert len({message.source_key for message in messages}) == 2
    assert passed == PassedOver(repeated=1)


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    "line",
    [
        {"type": "response_item"},
        {"type": "response_item", "payload": []},
        {"type": "response_item", "payload": {"type": ["message"]}},
        {"type": "response_item", "payload": {"type": "message", "role": "user"}},
        {"type": "response_item", "payload": {"type": "message", "role": {}, "content": [[]]}},
        {"type": {"a": 1}, "payload": 4},
        {"type": "ghost_snapshot", "payload": {}},
    ],
)
def test_lines_that_make_no_sense_are_counted(tmp_path: Path, line: dict[str, Any]) -> None:
    assert read(tmp_path, json.dumps(line).encode() + b"\n") == ([], PassedOver(other=1))
