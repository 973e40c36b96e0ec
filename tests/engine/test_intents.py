"""The valid intents of a checkpoint, and that a refused one leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import HoldfastError, InvalidIntent
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot

REFUSED: dict[str, dict[str, Any]] = {
    "empty reasoning": {"reasoning": ""},
    "blank reasoning": {"reasoning": " \n\t "},
    "a megabyte of reasoning": {"reasoning": "x" * 1_000_000},
    "reasoning that is not text": {"reasoning": 7},
    "confidence below 0": {"confidence": -0.1},
    "confidence above 1": {"confidence": 1.1},
    "confidence that is not a number": {"confidence": float("nan")},
    "infinite confidence": {"confidence": float("inf")},
    "confidence in words": {"confidence": "high"},
    "a truth value as confidence": {"confidence": True},
    "a name of 129 characters": {"name": "n" * 129},
    "an empty name": {"name": ""},
    "a blank name": {"name": "  "},
    "a name with a line break": {"name": "two\nlines"},
    "a name with an escape": {"name": "red\x1b[31m"},
    "a name with a NUL": {"name": "a\0b"},
    "a name with a direction override": {"name": "abc\u202etxt"},
    "a name with surrounding space": {"name": " name "},
    "the name HEAD": {"name": "HEAD"},
    "the name HEAD~2": {"name": "HEAD~2"},
    "the name initial": {"name": "initial"},
    "the name approved": {"name": "approved"},
    "a name that is a moment": {"name": "@{yesterday}"},
    "a name that is taken": {"name": "taken"},
    "tags as one text": {"tags": "urgent"},
    "an empty tag": {"tags": ("",)},
    "a tag with control characters": {"tags": ("a\nb",)},
    "a tool call that is no JSON": {"tool_calls": ({"input": object()},)},
    "a tool call that is neither text nor a mapping": {"tool_calls": (7,)},
}


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_checkpoint_says_why_and_stores_nothing(tmp_path: Path, case: str) -> None:
    file = fill(tmp_path / "project/file")
    with SessionCheckpointer(tmp_path / "project", "s") as session:
        first = session.checkpoint("before", name="taken")
        before = session.stats
        file.write_bytes(b"new content that nothing may keep")
        with pytest.raises(InvalidIntent) as refused:
            session.checkpoint(**{"reasoning": "why", **REFUSED[case]})
        assert refused.value.message
        assert isinstance(refused.value, ValueError)
        assert session.stats == before
        assert session.head_id == first


@pytest.mark.requirement("CP-2")
def test_everything_said_about_a_checkpoint_is_kept(tmp_path: Path) -> None:
    fill(tmp_path / "project/file")
    calls = ("ls -l", {"name": "Edit", "input": {"path": "ä\n", "n": 1}})
    with SessionCheckpointer(tmp_path / "project", "s") as session:
        made = session.checkpoint(
            "why: \x1b[31m control characters\0 and ünïcode",
            goal_id="g",
            task_id="t",
            tool_calls=calls,
            confidence=1,
            name="n" * 128,
            tags=("a", "b", "a"),
        )
    with SessionCheckpointer.load(tmp_path / "project", "s") as session:
        intent = get_snapshot(session, made).intent
    assert intent.reasoning == "why: \x1b[31m control characters\0 and ünïcode"
    assert (intent.goal_id, intent.task_id, intent.confidence) == ("g", "t", 1.0)
    assert intent.tool_calls == calls
    assert intent.checkpoint_name == "n" * 128
    assert intent.tags == ("a", "b")


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize("confidence", [0, 0.0, 0.5, 1, 1.0])
def test_both_ends_of_the_confidence_scale_are_allowed(tmp_path: Path, confidence: float) -> None:
    (tmp_path / "project").mkdir()
    with SessionCheckpointer(tmp_path / "project", "s") as session:
        made = session.checkpoint("why", confidence=confidence)
        assert get_snapshot(session, made).intent.confidence == confidence


@pytest.mark.requirement("CP-2")
def test_reasoning_from_a_command_line_that_is_not_text_is_kept_readable(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with SessionCheckpointer(tmp_path / "project", "s") as session:
        made = session.checkpoint("caf\udce9")
        assert get_snapshot(session, made).intent.reasoning == "caf\\udce9"


@pytest.mark.requirement("CP-2")
def test_a_name_is_taken_only_within_its_session(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with (
        SessionCheckpointer(tmp_path / "project", "one") as one,
        SessionCheckpointer(tmp_path / "project", "two") as two,
    ):
        assert one.checkpoint("why", name="same") != two.checkpoint("why", name="same")
        with pytest.raises(InvalidIntent, match="same"):
            two.checkpoint("why", name="same")


@pytest.mark.requirement("CP-1")
@pytest.mark.parametrize("session_id", ["", "  ", "a\nb", " a", "x" * 201, "\0"])
def test_a_session_id_that_cannot_be_typed_is_refused(tmp_path: Path, session_id: str) -> None:
    (tmp_path / "project").mkdir()
    with pytest.raises(HoldfastError):
        SessionCheckpointer(tmp_path / "project", session_id)
