"""Settings with comments are edited in place: what is put in can be taken out to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.interfaces.agent_setup.hooks_edit import (
    found_hooks,
    with_hooks,
    without_hooks,
)
from holdfast.interfaces.agent_setup.json_text import NotJson, append, load, remove, scan
from holdfast.interfaces.agents import agent_named

pytestmark = pytest.mark.requirement("HK-1")

ENTRIES = agent_named("claude-code").hook_entries("holdfast")
FIRST = next(iter(ENTRIES["PreToolUse"]))

_GUARDED = """{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {"type": "command", "command": "./guard.sh"} // mine
        ]
      }
    ]
  }
}
"""
_TRAILING = """{
  "hooks": {
    // keep
    "Stop": [{"hooks": [{"type": "command", "command": "y"}]}],
  },
  "permissions": {"allow": ["Bash(ls:*)"]},
}
"""
SETTINGS = [
    '{"model": "opus"}',
    '{"model": "opus"}\n',
    '{\n  "model": "opus"\n}\n',
    '{\n\t"model": "opus",\n\t"env": {"A": "1"}\n}',
    '{\r\n    "model": "opus"\r\n}\r\n',
    '{\n  // my model\n  "model": "opus", // the best\n  /* more */\n}\n',
    '{\n  "model": "opus" // the best\n}\n',
    '{\n  "model": "opus",\n}\n',
    '\ufeff{\n  "a": 1\n}\n',
    '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}, "z": [1, 2]}',
    _GUARDED,
    _TRAILING,
]


@pytest.mark.parametrize("text", SETTINGS)
def test_our_entries_go_in_once_and_out_to_the_byte(text: str) -> None:
    before = load(text)
    edited = with_hooks(text, "claude-code", ENTRIES, version=False)
    after = load(edited)
    assert found_hooks(edited, "claude-code") == ENTRIES
    assert {k: v for k, v in after.items() if k != "hooks"} == {
        k: v for k, v in before.items() if k != "hooks"
    }
    for event, items in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(items)] == items
    assert with_hooks(edited, "claude-code", ENTRIES, version=False) == edited
    assert without_hooks(edited, "claude-code", version=False) == text


@pytest.mark.parametrize("text", SETTINGS)
def test_no_line_of_anybody_else_is_changed(text: str) -> None:
    edited = with_hooks(text, "claude-code", ENTRIES, version=False)
    if text.count("\n") < 2:
        return  # all of it is one line
    kept = edited.splitlines()
    for line in text.splitlines():
        code, slashes, note = line.partition(" //")
        assert any(
            kept_line.startswith(code.rstrip("], }")) and kept_line.endswith(slashes + note)
            for kept_line in kept
        ), line


def test_entries_of_an_older_version_are_replaced() -> None:
    old = agent_named("claude-code").hook_entries("/old/python -m holdfast")
    text = with_hooks('{\n  "a": 1\n}\n', "claude-code", old, version=False)
    new = with_hooks(text, "claude-code", ENTRIES, version=False)
    assert "/old/python" not in new
    assert found_hooks(new, "claude-code") == ENTRIES
    assert without_hooks(new, "claude-code", version=False) == '{\n  "a": 1\n}\n'


def test_our_handler_in_a_group_of_another_user_is_found_and_leaves_the_others() -> None:
    text = json.dumps(
        {
            "hooks": {
                "PreToolUse": [
                    {
                        "matcher": "Bash",
                        "hooks": [
                            {"type": "command", "command": "./guard.sh"},
                            {"type": "command", "command": "holdfast hook claude-code"},
                        ],
                    }
                ]
            }
        },
        indent=2,
    )
    left = without_hooks(text, "claude-code", version=False)
    assert left is not None
    (group,) = load(left)["hooks"]["PreToolUse"]
    assert [handler["command"] for handler in group["hooks"]] == ["./guard.sh"]


@pytest.mark.parametrize(
    "command",
    [
        "holdfast hook claude-code-two",
        "myholdfast hook claude-code",
        "echo holdfast",
        "holdfast checkpoint x",
        "holdfast hook codex",
    ],
)
def test_a_command_that_only_looks_like_ours_stays(command: str) -> None:
    handler = {"type": "command", "command": command}
    text = json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}})
    assert without_hooks(text, "claude-code", version=False) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"a": }',
        '{"a": 1} x',
        "{'a': 1}",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        "[" * 5000,
        '{"a": "\\x"}',
        '{"a": 01}',
    ],
)
def test_what_is_not_valid_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(NotJson):
        with_hooks(text, "claude-code", ENTRIES, version=False)


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Objects in any style of formatting, with comments and trailing commas where they may be."""
    return _render(draw, draw(st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=4)))


def _render(draw: st.DrawFn, value: Any, depth: int = 1) -> str:
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    brackets = "{}" if isinstance(value, dict) else "[]"
    items = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
    multiline = draw(st.booleans())
    space = "\n" + draw(st.sampled_from(["  ", "\t"])) * depth if multiline else ""
    told = []
    for number, (key, item) in enumerate(items):
        label = "" if key is None else json.dumps(key) + ": "
        last = number == len(items) - 1
        comma = "" if last and not (multiline and draw(st.booleans())) else ","
        note = draw(st.sampled_from(["", " // a note, {", " /* [ */"])) if multiline else ""
        told.append(f"{space}{label}{_render(draw, item, depth + 1)}{comma}{note}")
    return (
        brackets[0]
        + (" " if not multiline else "").join(told)
        + ("\n" if multiline else "")
        + brackets[1]
    )


@given(text=documents())
def test_any_document_gets_our_entries_and_loses_them_to_the_byte(text: str) -> None:
    before = load(text)
    if "hooks" in before:
        return
    edited = with_hooks(text, "claude-code", ENTRIES, version=False)
    assert load(edited) == before | {"hooks": ENTRIES}
    assert without_hooks(edited, "claude-code", version=False) == text


@given(text=documents(), value=VALUES)
def test_one_more_child_of_any_container_changes_nothing_else(text: str, value: Any) -> None:
    waiting = [scan(text)]
    places = []
    while waiting:
        node = waiting.pop()
        if node.kind in ("object", "list"):
            places.append(node)
            waiting += [child.value for child in node.children]
    for node in places:
        key = "fresh key" if node.kind == "object" else None
        edited = append(text, node, value, key)
        again = scan(edited)
        found = _at(again, node.start)
        assert len(found.children) == len(node.children) + 1
        taken = remove(edited, found, found.children[-1])
        assert load(taken) == load(text)
        if node.children:
            assert taken == text


def _at(root: Any, start: int) -> Any:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.start == start and node.kind in ("object", "list"):
            return node
        waiting += [child.value for child in node.children]
    raise AssertionError(start)
