"""Sessions of Claude Code: what becomes a message, with which role, key, time and tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.transcript_messages import TranscriptMessage
from holdfast.engine.conversation.transcripts import PassedOver, TranscriptReading
from holdfast.interfaces.agents.claude_code import AGENT
from tests.support.transcripts import claude_line

EDIT = {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": {"file_path": "a.py"}}


def read(tmp_path: Path, *lines: bytes) -> tuple[list[TranscriptMessage], PassedOver]:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(lines))
    with TranscriptReading(path, AGENT.transcript_message) as reading:
        return list(reading), reading.passed_over


@pytest.mark.requirement("SE-2")
def test_a_turn_becomes_what_was_asked_what_was_done_and_what_came_of_it(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
    asked, done, came = read(
        tmp_path,
        claude_line("u1", "Fix the login"),
        claude_line("u2", [{"type": "text", "text": "I will."}, EDIT], role="assistant"),
        claude_line("u3", [result]),
    )[0]
    assert (asked.source_key, asked.role, asked.content) == ("claude:u1", "user", "Fix the login")
    assert asked.at_ns == 1786795201_123_000_000
    assert (done.role, done.content, done.tool_use_ids) == ("assistant", "I will.", ("toolu_1",))
    assert done.tool_calls == ({"id": "toolu_1", "name": "Edit", "input": {"file_path": "a.py"}},)
    assert (came.role, came.content, came.tool_use_ids) == ("tool", "done", ("toolu_1",))


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    ("content", "more", "role", "told"),
    [
        ("hello", {}, "user", "hello"),
        ("Caveat: …", {"isMeta": True}, "system", "Caveat: …"),
        ("This session is being continued", {"isCompactSummary": True}, "system", None),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], {}, "user", "a\nb"),
        ([{"type": "image", "source": {}}, {"type": "text", "text": "see"}], {}, "user", None),
        (["plain"], {}, "user", "plain"),
        ("\ud800 lone", {}, "user", "\\ud800 lone"),
    ],
)
def test_contents_are_shown_as_a_person_sees_them(
    tmp_path: Path, content: Any, more: dict[str, Any], role: str, told: str | None
) -> None:
    (message,) = read(tmp_path, claude_line("u", content, **more))[0]
    assert message.role == role
    if told is not None:
        assert message.content == told


@pytest.mark.requirement("SE-2")
def test_pictures_and_unknown_blocks_leave_a_trace_and_thinking_none(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "secret"},
        {"type": "image", "source": {"data": "AAAA"}},
        {"type": "hologram"},
        {"text": "no type"},
        7,
    ]
    (message,) = read(tmp_path, claude_line("u", blocks))[0]
    assert message.content == "[image]\n[hologram]\n[unknown]"


@pytest.mark.requirement("SE-2")
def test_lines_that_are_not_part_of_the_conversation_are_counted(tmp_path: Path) -> None:
    messages, passed = read(
        tmp_path,
        json.dumps({"type": "summary", "summary": "Fix login", "leafUuid": "u9"}).encode() + b"\n",
        json.dumps({"type": "system", "subtype": "compact_boundary", "uuid": "b"}).encode() + b"\n",
        json.dumps({"type": "file-history-snapshot", "messageId": "u1"}).encode() + b"\n",
        json.dumps({"type": "user", "message": "not an object"}).encode() + b"\n",
        json.dumps({"type": ["user"], "message": {}}).encode() + b"\n",
        claude_line("u2", "of a subagent", isSidechain=True),
        claude_line("u3", [{"type": "thinking", "thinking": "hm"}], role="assistant"),
        claude_line("u4", None),
        claude_line("u5", {"a": "mapping"}),
    )
    assert (messages, passed) == ([], PassedOver(other=9))


@pytest.mark.requirement("SE-2")
def test_a_result_of_several_parts_and_a_remark_beside_it_are_both_reported(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "line"}, {"type": "image"}]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": parts}
    remark = {"type": "text", "text": "stop"}
    (message,) = read(tmp_path, claude_line("u", [result, remark]))[0]
    assert (message.role, message.content) == ("user", "stop\nline\n[image]")
    assert message.tool_use_ids == ("toolu_1",)


@pytest.mark.requirement("SE-2")
def test_compaction_changes_no_key_and_messages_after_it_follow(tmp_path: Path) -> None:
    before = [claude_line("u1", "one"), claude_line("u2", "two", role="assistant")]
    boundary = {"type": "system", "subtype": "compact_boundary", "logicalParentUuid": "u2"}
    after = [
        json.dumps(boundary).encode() + b"\n",
        claude_line("u3", "a summary of one and two", isCompactSummary=True),
        claude_line("u4", "three", parentUuid="u3"),
    ]
    keys = [message.source_key for message in read(tmp_path, *before)[0]]
    messages = read(tmp_path, *before, *after)[0]
    assert [m.source_key for m in messages][: len(keys)] == keys
    assert [(m.source_key, m.role) for m in messages[2:]] == [
        ("claude:u3", "system"),
        ("claude:u4", "user"),
    ]


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize("uuid", [None, "", 7, "x" * 201, "new\nline"])
def test_without_a_usable_uuid_the_content_is_the_key(tmp_path: Path, uuid: Any) -> None:
    first, second = read(
        tmp_path,
        claude_line(uuid, "same", timestamp="2026-08-15T12:00:01Z"),
        claude_line(uuid, "same", timestamp="2026-08-15T12:00:01Z"),
        claude_line(uuid, "same", timestamp="2026-08-15T12:00:02Z"),
    )[0]
    assert first.source_key.startswith("claude:#")
    assert first.source_key != second.source_key


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    "timestamp", [None, 5, "", "yesterday", "0001-01-01T00:00:00+23:59", "1960-01-01T00:00:00Z"]
)
def test_a_time_that_cannot_be_is_no_time(tmp_path: Path, timestamp: Any) -> None:
    (message,) = read(tmp_path, claude_line("u", "hello", timestamp=timestamp))[0]
    assert message.at_ns is None


@pytest.mark.requirement("SE-2")
def test_a_time_without_a_zone_is_taken_as_utc(tmp_path: Path) -> None:
    (message,) = read(tmp_path, claude_line("u", "hi", timestamp="1970-01-01T00:00:01"))[0]
    assert message.at_ns == 1_000_000_000
