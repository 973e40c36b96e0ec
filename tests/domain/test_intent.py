"""What may be said about a checkpoint, and that it is stored as it was said."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidIntent
from holdfast.domain.intent import (
    NAME_MAX_LENGTH,
    REASONING_MAX_LENGTH,
    TAG_MAX_LENGTH,
    SnapshotIntent,
    make_intent,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
texts = st.text(min_size=1, max_size=30).filter(str.strip)
names = texts.filter(lambda name: name == name.strip() and name.isprintable()).filter(
    lambda name: name not in ("HEAD", "initial", "approved") and not name.startswith(("HEAD", "@"))
)


@st.composite
def intents(draw: st.DrawFn) -> SnapshotIntent:
    return make_intent(
        draw(texts),
        goal_id=draw(st.none() | texts),
        task_id=draw(st.none() | texts),
        tool_calls=draw(
            st.lists(texts | st.dictionaries(st.text(max_size=5), json_values), max_size=3)
        ),
        confidence=draw(st.floats(0.0, 1.0)),
        name=draw(st.none() | names),
        tags=draw(st.lists(names, max_size=3)),
    )


@pytest.mark.requirement("CP-5")
@given(intent=intents())
def test_an_intent_survives_the_way_through_plain_data(intent: SnapshotIntent) -> None:
    assert SnapshotIntent.from_dict(intent.to_dict()) == intent
    assert SnapshotIntent.from_dict(json.loads(json.dumps(intent.to_dict()))) == intent


@pytest.mark.requirement("CP-5")
def test_an_intent_cannot_be_changed_from_outside() -> None:
    call: dict[str, Any] = {"name": "Edit", "arguments": {"path": "a"}}
    tags = ["one"]
    intent = make_intent("why", tool_calls=[call], tags=tags)
    call["arguments"]["path"] = "changed"
    tags.append("two")
    assert intent.tool_calls == ({"name": "Edit", "arguments": {"path": "a"}},)
    assert intent.tags == ("one",)
    with pytest.raises(AttributeError):
        intent.reasoning = "changed"  # type: ignore[misc]


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize(
    "reasoning",
    [
        "",
        " ",
        "\n\t",
        "x" * (REASONING_MAX_LENGTH + 1),
        "\ud800" * (REASONING_MAX_LENGTH // 2),
        None,
        5,
    ],
)
def test_a_reasoning_that_says_nothing_or_too_much_is_refused(reasoning: Any) -> None:
    with pytest.raises(InvalidIntent) as refused:
        make_intent(reasoning)
    assert refused.value.hint
    assert isinstance(reasoning, str) or f"{reasoning!r} is not a string" in refused.value.message


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize(
    "confidence", [-0.01, 1.01, math.nan, math.inf, -math.inf, True, "0.5", None]
)
def test_a_confidence_outside_its_range_is_refused(confidence: Any) -> None:
    with pytest.raises(InvalidIntent, match="confidence") as refused:
        make_intent("why", confidence=confidence)
    assert refused.value.hint


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, 0.5])
def test_the_ends_of_the_range_are_allowed(confidence: float) -> None:
    assert make_intent("why", confidence=confidence).confidence == confidence


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        " x",
        "x ",
        "a\nb",
        "a\x1b[31m",
        "\udcff",
        "x" * (NAME_MAX_LENGTH + 1),
        "HEAD",
        "HEAD~2",
        "initial",
        "approved",
        "@{yesterday}",
        "-x",
        5,
    ],
)
def test_a_name_that_cannot_be_typed_back_is_refused(name: Any) -> None:
    with pytest.raises(InvalidIntent):
        make_intent("why", name=name)


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize(
    "name", ["x" * NAME_MAX_LENGTH, "ümläut", "with space", "a/b", "0a1b", "x-"]
)
def test_any_other_name_is_taken_as_it_is(name: str) -> None:
    assert make_intent("why", name=name).checkpoint_name == name


@pytest.mark.parametrize(
    "tags", ["one text", [""], [" "], ["a\nb"], ["x" * (TAG_MAX_LENGTH + 1)], [5], None, {"a": 1}]
)
def test_tags_are_a_list_of_short_words(tags: Any) -> None:
    with pytest.raises(InvalidIntent):
        make_intent("why", tags=tags)


@pytest.mark.requirement("CP-2")
@pytest.mark.parametrize("calls", ["Edit", {"name": "Edit"}, None, 5])
def test_one_tool_call_is_not_taken_for_a_list_of_its_parts(calls: Any) -> None:
    with pytest.raises(InvalidIntent, match="tool_calls must be a list") as refused:
        make_intent("why", tool_calls=calls)
    assert refused.value.hint


def test_a_tag_is_kept_once() -> None:
    assert make_intent("why", tags=["b", "a", "b"]).tags == ("b", "a")


NOT_JSON: dict[str, Any] = {
    "an object": {"x": object()},
    "a set": {"x": {1, 2}},
    "bytes": {"x": b"bytes"},
    "a number": 5,
    "nothing": None,
}


@pytest.mark.parametrize("call", NOT_JSON.values(), ids=NOT_JSON)
def test_a_tool_call_that_is_no_json_is_refused(call: Any) -> None:
    with pytest.raises(InvalidIntent, match="tool call"):
        make_intent("why", tool_calls=[call])


def test_a_tool_call_that_holds_itself_is_refused() -> None:
    call: dict[str, Any] = {}
    call["self"] = call
    with pytest.raises(InvalidIntent, match="tool call"):
        make_intent("why", tool_calls=[call])


def test_a_tool_call_nested_beyond_reason_is_refused() -> None:
    call: dict[str, Any] = {}
    for _ in range(100_000):
        call = {"x": call}
    with pytest.raises(InvalidIntent, match="tool call"):
        make_intent("why", tool_calls=[call])


@pytest.mark.parametrize("text", ["\udcff", "a\ud800b"])
def test_bytes_that_are_no_text_are_written_out(text: str) -> None:
    intent = make_intent(
        text, goal_id=text, task_id=text, tool_calls=[text, {"path": text, text: 1}]
    )
    for value in (intent.reasoning, intent.goal_id, intent.task_id, *intent.tool_calls):
        assert json.dumps(value, ensure_ascii=False).encode("utf-8")
    assert "\\ud" in intent.reasoning
