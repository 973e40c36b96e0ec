"""What a restore selected is read back from its record exactly as it was written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.restore.selections import (
    Selection,
    restore_intent,
    selected_in,
    selected_words,
)

paths = st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5, unique=True)
names = st.lists(st.text("0123456789abcdef", min_size=12, max_size=12), max_size=3, unique=True)


@pytest.mark.requirement("RB-7")
@given(paths, names)
def test_every_path_comes_back_exactly(chosen: list[bytes], hunks: list[str]) -> None:
    intent = restore_intent("Restored to x", chosen, hunks, confidence=1.0)
    (call,) = json.loads(json.dumps(intent.tool_calls))
    assert json.dumps(call, ensure_ascii=False).encode()  # no text that is not UTF-8
    found = selected_in([call], intent.reasoning)
    assert found == Selection(tuple(chosen), tuple(sorted(hunks)))


@pytest.mark.requirement("RB-7")
def test_a_restore_of_everything_selects_nothing_whatever_its_words_say() -> None:
    for words in ("Restored to x", "Restored to x (2 selected paths)"):
        intent = restore_intent(words, [], confidence=1.0)
        assert selected_in(intent.tool_calls, words) is None


@pytest.mark.requirement("RB-7")
@pytest.mark.parametrize(
    "call",
    [
        "holdfast restore",
        {"tool": "holdfast restore"},
        {"tool": "holdfast restore", "paths": "a"},
        {"tool": "holdfast restore", "paths": [1, {"hex": "zz"}, None], "hunks": 3},
    ],
)
def test_foreign_text_is_no_path(call: object) -> None:
    found = selected_in([call], "Restored to x")  # type: ignore[list-item]
    assert found is None or found.paths == ()


@pytest.mark.requirement("RB-7")
def test_many_paths_are_named_in_part() -> None:
    many = Selection(tuple(b"f%d" % number for number in range(5)))
    assert selected_words(many) == "f0, f1, f2 and 2 more"
    assert selected_words(Selection()) == ""
