"""Tool calls read like the typed command, whichever agent recorded them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.tool_calls import call_words

pytestmark = pytest.mark.requirement("CL-2")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("Bash(ls)", "Bash(ls)"),
        ({"tool": "Bash", "kind": "command", "command": "rm -rf src"}, "Bash: rm -rf src"),
        ({"tool": "Write", "kind": "edit", "paths": ["a.py", "b.py"]}, "Write: a.py, b.py"),
        (
            {"tool": "Bash", "command": "rm -rf x", "risk": "risky", "reasons": ["deletes x"]},
            "Bash: rm -rf x (risky: deletes x)",
        ),
        (
            {"id": "t1", "name": "Edit", "input": {"file_path": "a.py", "old_string": "b"}},
            "Edit: a.py",
        ),
        ({"name": "Edit", "arguments": {"n": [1, None, True]}}, "Edit: n: 1, , true"),
        ({"name": "Task", "input": "look at it"}, "Task: look at it"),
        ({"tool": "WebSearch"}, "WebSearch"),
    ],
)
def test_a_call_is_the_tool_and_what_it_was_given(call: Any, words: str) -> None:
    assert call_words(call) == words
