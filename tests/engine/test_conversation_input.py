"""What callers and transcripts may put into a conversation, and what is refused or shortened."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import NotFound, UsageError


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("0")
    return workspace


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize("at", ["0001-01-01T00:00", "0001-01-01T00:00Z", "9999-12-31T00:00Z"])
def test_a_time_that_no_clock_can_show_is_refused(workspace: Path, at: str) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(UsageError, match="is out of range"):
            session.add_message("user", "hello", at=datetime.fromisoformat(at))
        assert session.messages() == []


@pytest.mark.requirement("SE-2")
def test_an_index_that_no_message_can_have_is_refused(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.add_message("user", "hello")
        for wrong in (-1, 1 << 70, True, "0"):
            with pytest.raises(UsageError, match="not a message index"):
                session.messages(first=wrong)  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="a number of messages"):
                session.messages(limit=wrong)  # type: ignore[arg-type]
        assert session.messages(limit=0) == []


def called(path: Path, *inputs: str) -> Path:
    """Add calls of a tool to a transcript, all in one message; each input as it is there."""
    calls = ", ".join(
        f'{{"type": "tool_use", "id": "t", "name": "Plot", "input": {given}}}' for given in inputs
    )
    with path.open("a") as file:
        file.write(f'{{"type": "assistant", "uuid": "c", "message": {{"content": [{calls}]}}}}\n')
    return path


@pytest.mark.requirement("SE-2", "ST-7")
def test_numbers_that_are_none_in_json_travel_as_texts(workspace: Path, tmp_path: Path) -> None:
    path = called(tmp_path / "t.jsonl", '{"from": NaN, "to": [1e999, -Infinity, 0.5]}')
    expected = {"from": "nan", "to": ["inf", "-inf", 0.5]}
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why", tool_calls=[{"to": [float("nan"), 1.5]}])
        session.add_message("user", "hello", tool_calls=[{"n": float("inf")}])
        session.import_transcript(path)
        session.export(tmp_path / "bundle")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    SessionCheckpointer.import_bundle(elsewhere, tmp_path / "bundle", foreign=True)
    with SessionCheckpointer(elsewhere, "s") as session:
        snapshot = session.get(str(session.head_id))
        assert snapshot is not None
        assert snapshot.intent.tool_calls == ({"to": ["nan", 1.5]},)
        first, second = session.messages()
        assert first.tool_calls == ({"n": "inf"},)
        assert second.tool_calls == ({"id": "t", "name": "Plot", "input": expected},)


@pytest.mark.requirement("SE-2")
def test_of_calls_with_very_many_values_the_beginning_is_kept(
    workspace: Path, tmp_path: Path
) -> None:
    numbers = ", ".join(["1234567"] * 100_000)
    path = called(tmp_path / "t.jsonl", f"[{numbers}]", *(['{"short": 1}'] * 20_000))
    with SessionCheckpointer(workspace, "s") as session:
        session.import_transcript(path)
        (message,) = session.messages()
    large, small, *_, last = message.tool_calls
    assert isinstance(large, dict)
    assert large["input"].startswith("[1234567, 1234567")
    assert "more characters are in the transcript" in large["input"]
    assert small == {"id": "t", "name": "Plot", "input": {"short": 1}}
    assert isinstance(last, dict)
    assert last["name"] == f"{20_001 - len(message.tool_calls) + 1:,} more calls"
    assert len(json.dumps(message.tool_calls)) < 500_000


@pytest.mark.requirement("SE-2")
def test_a_transcript_that_no_file_can_be_called_is_not_found(workspace: Path) -> None:
    with (
        SessionCheckpointer(workspace, "s") as session,
        pytest.raises(NotFound, match="no such transcript"),
    ):
        session.import_transcript(Path("a\0b"))


@pytest.mark.requirement("SE-2")
def test_text_that_grows_when_it_is_written_out_is_measured_as_it_is_kept(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(UsageError, match="1200000 characters"):
            session.add_message("user", "\ud800" * 200_000)
        assert session.messages() == []
