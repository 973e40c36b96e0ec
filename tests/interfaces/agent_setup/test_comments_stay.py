"""Comments in settings files: wherever the user put one, it outlives our entries."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.interfaces.agent_setup.hooks_edit import (
    found_hooks,
    with_hooks,
    without_hooks,
)
from holdfast.interfaces.agent_setup.json_text import load
from holdfast.interfaces.agents import agent_named

ENTRIES = agent_named("claude-code").hook_entries("holdfast")
SPACES = ["", " ", "\n", "\n  ", "\t", "\r\n", "// note\n", "/* note */", " // note\n  "]
VALUES = ["1", "null", '"a // b"', '"/* c */"', "[]", "{}", "[1, /* note */ 2]"]
GROUP = '{"matcher": "Bash", /* note */ "hooks": [{"type": "command", "command": "mine"}]}'


@st.composite
def commented(draw: st.DrawFn) -> str:
    """Settings with comments, spaces and trailing commas at every place where they may be."""

    def space() -> str:
        return "".join(draw(st.lists(st.sampled_from(SPACES), max_size=2)))

    def joined(opening: str, items: list[str], closing: str) -> str:
        told = [space() + item + space() for item in items]
        has_comma: bool = draw(st.booleans())
        told += [""] if items and has_comma else []
        return opening + ",".join(told) + space() + closing

    def member(key: str, value: str) -> str:
        return f'"{key}"{space()}:{space()}{value}'

    events = draw(st.lists(st.sampled_from(["PreToolUse", "Stop", "Other"]), unique=True))
    lists = [joined("[", [GROUP] * draw(st.integers(0, 2)), "]") for _ in events]
    hooks = joined("{", [member(e, x) for e, x in zip(events, lists, strict=True)], "}")
    values = draw(st.lists(st.sampled_from(VALUES), max_size=2))
    members = [member(f"k{number}", value) for number, value in enumerate(values)]
    if draw(st.booleans()):
        members.insert(draw(st.integers(0, len(members))), member("hooks", hooks))
    return space() + joined("{", members, "}") + space()


def notes(text: str) -> int:
    return len(re.findall("note", text))


def without_empty_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings in which an empty list of hooks is no list."""
    hooks = {event: items for event, items in settings.get("hooks", {}).items() if items}
    rest = {key: value for key, value in settings.items() if key != "hooks"}
    return rest | ({"hooks": hooks} if hooks else {})


@pytest.mark.requirement("HK-1")
@given(text=commented())
def test_no_comment_and_no_value_is_lost_by_our_coming_and_going(text: str) -> None:
    edited = with_hooks(text, "claude-code", ENTRIES, version=False)
    assert found_hooks(edited, "claude-code") == ENTRIES
    assert notes(edited) == notes(text)
    assert with_hooks(edited, "claude-code", ENTRIES, version=False) == edited
    left = without_hooks(edited, "claude-code", version=False)
    assert notes(left or "") == notes(text)
    assert without_empty_hooks(load(left or "{}")) == without_empty_hooks(load(text))


@pytest.mark.requirement("HK-1")
@pytest.mark.parametrize(
    "text",
    [
        "{\n  // my settings\n}\n",
        '{\n  "hooks": {\n    // my hooks\n  }\n}\n',
        '{\n  "a": "x", "b": true /* b */}/* the end */\n',
    ],
)
def test_comments_alone_are_a_reason_to_keep_a_file_as_it_was(text: str) -> None:
    edited = with_hooks(text, "claude-code", ENTRIES, version=False)
    assert load(edited)["hooks"] == ENTRIES
    assert without_hooks(edited, "claude-code", version=False) == text
