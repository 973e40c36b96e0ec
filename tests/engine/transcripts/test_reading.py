"""Transcripts are files that a program is writing, replacing or damaging: reading goes on."""

from __future__ import annotations

import json
import os
import socket
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bootstrap.components import transcript_reader
from holdfast.domain.errors import NotFound, Refused, UsageError
from holdfast.domain.transcript_messages import TranscriptMessage
from holdfast.engine.conversation import transcripts as transcript_lines
from holdfast.engine.conversation.transcripts import (
    HEAD_BYTES,
    PassedOver,
    TranscriptLines,
    TranscriptPosition,
    TranscriptReading,
)
from tests.support.transcripts import claude_line, codex_text

pytestmark = pytest.mark.requirement("SE-2")


def read_messages(
    path: Path, since: TranscriptPosition | None = None
) -> tuple[list[str], TranscriptReading]:
    with TranscriptReading(path, transcript_reader("claude-code"), since) as reading:
        return [message.content for message in reading], reading


def test_a_reading_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(claude_line("1", "one"))
    first, reading = read_messages(path)
    with path.open("ab") as file:
        file.write(claude_line("2", "two") + claude_line("3", "three"))
    stored = json.loads(json.dumps(reading.position.to_dict()))
    second, again = read_messages(path, TranscriptPosition.from_dict(stored))
    assert (first, second, again.restarted) == (["one"], ["two", "three"], False)
    assert read_messages(path, again.position)[0] == []


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_wherever_the_writer_is_cut_off_every_message_comes_once(
    tmp_path: Path, agent: str
) -> None:
    texts = ["one", "zwei — ü", "three", "four"]
    written = [
        claude_line(str(n), text) if agent == "claude-code" else codex_text("user", text, n)
        for n, text in enumerate(texts)
    ]
    whole = b"".join(written)
    path = tmp_path / "t.jsonl"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with TranscriptReading(path, transcript_reader(agent)) as reading:
            found = [message.content for message in reading]
        with path.open("ab") as file:
            file.write(whole[cut:])
        with TranscriptReading(path, transcript_reader(agent), reading.position) as rest:
            found += [message.content for message in rest]
        assert found == texts
        assert rest.passed_over == PassedOver()
        assert not rest.restarted


def test_a_whole_last_line_needs_no_line_end(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(claude_line("1", "one").rstrip())
    first, reading = read_messages(path)
    with path.open("ab") as file:
        file.write(b"\n" + claude_line("2", "two"))
    assert (first, read_messages(path, reading.position)[0]) == (["one"], ["two"])


def test_a_reader_that_stops_anywhere_misses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(claude_line(str(n), str(n)) for n in range(20)))
    found: list[str] = []
    since = None
    while True:
        with TranscriptReading(path, transcript_reader("claude-code"), since) as reading:
            message = next(iter(reading), None)
            since = reading.position
        if message is None:
            break
        found.append(message.content)
    assert found == [str(n) for n in range(20)]


def test_what_is_appended_while_reading_is_left_to_the_next_reading(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(claude_line("0", "0"))
    found = []
    with (
        TranscriptReading(path, transcript_reader("claude-code")) as reading,
        path.open("ab", buffering=0) as file,
    ):
        for message in reading:
            found.append(message.content)
            file.write(claude_line(str(len(found)), str(len(found))))
    assert found == ["0"]
    assert read_messages(path, reading.position)[0] == ["1"]


@pytest.mark.parametrize("padding", [0, 3 * HEAD_BYTES])
def test_a_replaced_file_is_read_again_without_repeating_what_is_known(
    tmp_path: Path, padding: int
) -> None:
    path = tmp_path / "t.jsonl"
    first = claude_line("1", "one" + "." * padding)
    path.write_bytes(first + claude_line("2", "two"))
    with TranscriptReading(path, transcript_reader("claude-code")) as reading:
        known = {message.source_key for message in reading}
    path.unlink()
    path.write_bytes(first + claude_line("3", "three", more=1) + claude_line("2", "two"))
    with TranscriptReading(
        path, transcript_reader("claude-code"), reading.position, known=known.__contains__
    ) as again:
        assert [message.content for message in again] == ["three"]
    assert again.restarted


@pytest.mark.parametrize("keep", [0, 1, 50])
def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(claude_line("1", "one") + claude_line("2", "two"))
    position = read_messages(path)[1].position
    os.truncate(path, keep)
    assert read_messages(path, position)[1].restarted
    path.write_bytes(claude_line("9", "nine"))
    messages, reading = read_messages(path, position)
    assert (messages, reading.restarted) == (["nine"], True)


def test_a_file_cut_short_while_it_is_read_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(claude_line(str(n), "x" * 100_000) for n in range(20)))
    with TranscriptReading(path, transcript_reader("claude-code")) as reading:
        messages = iter(reading)
        next(messages)
        os.truncate(path, 0)
        assert len(list(messages)) < 19
    path.write_bytes(claude_line("9", "nine"))
    assert read_messages(path, reading.position)[0] == ["nine"]


def test_a_position_of_another_file_starts_from_the_beginning(tmp_path: Path) -> None:
    one, other = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_bytes(claude_line("1", "one"))
    other.write_bytes(claude_line("2", "two") + claude_line("3", "three"))
    assert read_messages(other, read_messages(one)[1].position)[0] == ["two", "three"]


@pytest.mark.parametrize("offset", [-1, 5, 1 << 70])
def test_a_wrong_position_starts_from_the_beginning(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(claude_line("1", "one"))
    assert read_messages(path, TranscriptPosition(offset, "", ""))[0] == ["one"]


@pytest.mark.parametrize(
    "spoiled",
    [
        b"{not json",
        b'"text"',
        b"[]",
        b"null",
        b"\x00" * 500,
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"type":"user","message":{"content":[{"type":"tool_use","input":'
        + b'{"a":' * 20_000  # deeper than any limit that other tests may have raised
        + b"1"
        + b"}" * 20_000
        + b"}]}}",
        b'{"n": ' + b"9" * 10_000 + b"}",
        '{"half": "'.encode("utf-16"),
    ],
    ids=lambda line: repr(line[:12]),
)
def test_a_spoiled_line_costs_only_itself(tmp_path: Path, spoiled: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(claude_line("1", "one") + spoiled + b"\n\r\n\n" + claude_line("2", "two"))
    messages, reading = read_messages(path)
    assert (messages, reading.passed_over.malformed) == (["one", "two"], 1)


def test_bytes_that_are_not_utf_8_become_replacements(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + claude_line("1", "caf_").replace(b"caf_", b"caf\xe9"))
    assert read_messages(path)[0] == ["caf\ufffd"]


def test_repeated_lines_and_numbers_that_lie_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    one = claude_line("1", "one", index=7, message_index=-3)
    path.write_bytes(one + one + claude_line("2", "two", index=7) + one)
    messages, reading = read_messages(path)
    assert (messages, reading.passed_over) == (["one", "two"], PassedOver(repeated=2))


def test_one_id_for_two_contents_loses_neither(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes((claude_line("1", "one") + claude_line("1", "other")) * 2)
    with TranscriptReading(path, transcript_reader("claude-code")) as reading:
        messages = list(reading)
    assert [message.content for message in messages] == ["one", "other"]
    assert messages[0].source_key == "claude:1" != messages[1].source_key


def test_a_line_beyond_the_limit_is_passed_over_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        file.write(claude_line("1", "one"))
        file.seek(1 << 30, os.SEEK_CUR)  # a gigabyte of NUL
        file.write(b"\n" + claude_line("2", "two"))
    tracemalloc.start()
    try:
        messages, reading = read_messages(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (messages, reading.passed_over) == (["one", "two"], PassedOver(too_long=1))
    assert peak < 4 * transcript_lines.LONGEST_LINE_BYTES


def test_a_line_that_grows_beyond_the_limit_is_not_read_again_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_lines, "LONGEST_LINE_BYTES", 1000)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"x" * 5000)
    found, too_long, since = [], 0, None
    for more in (b"x" * 5000, b"x\n" + claude_line("1", "one"), b""):
        with TranscriptReading(path, transcript_reader("claude-code"), since) as reading:
            found += [message.content for message in reading]
        since, too_long = reading.position, too_long + reading.passed_over.too_long
        if not more.startswith(b"x\n") and more:
            assert since.offset == path.stat().st_size
        with path.open("ab") as file:
            file.write(more)
    assert (found, too_long) == (["one"], 1)


def test_many_messages_take_no_more_memory_than_few(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        for number in range(8_000):
            file.write(claude_line(str(number), "x" * 4000))
    tracemalloc.start()
    try:
        with TranscriptReading(path, transcript_reader("claude-code")) as reading:
            count = sum(1 for _ in reading)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 8_000
    assert peak < path.stat().st_size // 2


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    linked = tmp_path / "linked"
    linked.symlink_to(fifo)
    to_device = tmp_path / "device"
    to_device.symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in (fifo, linked, to_device, tmp_path, tmp_path / "socket"):
            with pytest.raises(Refused, match="not a regular file"):
                TranscriptLines(path)


def test_a_symlink_to_a_transcript_is_followed(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(claude_line("1", "one"))
    (tmp_path / "link").symlink_to("t.jsonl")
    assert read_messages(tmp_path / "link")[0] == ["one"]


@pytest.mark.parametrize("name", ["missing", "nul\0", "file/below"])
def test_a_missing_transcript_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotFound, match="no such transcript"):
        TranscriptReading(tmp_path / name, transcript_reader("codex"))


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    unknown: Any = "telegraph"
    with pytest.raises(UsageError, match="telegraph") as refused:
        TranscriptReading(tmp_path, transcript_reader(unknown))
    assert refused.value.hint == "known formats: claude-code, codex, qwen-code"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)
_WORDS = st.sampled_from(
    "user assistant message content type text tool_use tool_result id uuid response_item payload "
    "compacted function_call output call_id role isMeta timestamp".split()
)
_LIKE = st.recursive(
    _WORDS | _JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=6),
    max_leaves=25,
)


@given(written=st.lists(_LIKE | _JSON, max_size=8), agent=st.sampled_from(["claude-code", "codex"]))
def test_no_line_of_any_shape_stops_the_reading(
    tmp_path_factory: pytest.TempPathFactory, written: list[Any], agent: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "t.jsonl"
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in written))
    with TranscriptReading(path, transcript_reader(agent)) as reading:
        for message in reading:
            assert isinstance(message, TranscriptMessage)
            message.content.encode()
            json.dumps(message.tool_calls).encode()
    assert reading.position.offset == path.stat().st_size
