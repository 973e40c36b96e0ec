"""`checkpoint_why`: the lines of a file with the steps that wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.interfaces.tools.search import Explained
from holdfast.tools import ToolHandlers
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("BX-1", "MC-1", "CP-10")


def test_why_tells_each_line_with_its_step(tools: ToolHandlers, workspace: Path) -> None:
    tools.call("checkpoint_create", {"reasoning": "how it began"})
    fill(workspace / "src" / "app.py", b"print(1)\nprint(2)\n")
    tools.session.add_message("user", "print two as well")
    tools.call("checkpoint_create", {"reasoning": "print two", "name": "two"})
    fill(workspace / "src" / "app.py", b"print(1)\nprint(2)\nprint(3)\n")
    result = tools.call("checkpoint_why", {"path": "src/app.py"})
    assert result.success
    data = result.data
    assert isinstance(data, Explained)
    initial, written, unsaved = data.spans
    assert (initial.state, written.state, unsaved.state) == ("initial", "written", "unsaved")
    assert written.checkpoint is not None
    assert (written.checkpoint.name, written.reasoning) == ("two", "print two")
    assert written.prompt is not None
    assert written.prompt.content == "print two as well"
    assert "line 2: two (" in result.output
    assert "why: print two" in result.output
    assert "line 3: not saved yet | print(3)" in result.output
    one = tools.call("checkpoint_why", {"path": f"{workspace}/src/app.py", "line": "2"})
    assert isinstance(one.data, Explained)
    assert [(span.first_line, span.text) for span in one.data.spans] == [(2, "print(2)")]


def test_why_of_a_long_file_is_bounded_and_says_so(tools: ToolHandlers, workspace: Path) -> None:
    lines = [b"%d\n" % number for number in range(600)]
    fill(workspace / "long", b"".join(lines[::2]))
    tools.call("checkpoint_create", {"reasoning": "even"})
    fill(workspace / "long", b"".join(lines))
    tools.call("checkpoint_create", {"reasoning": "odd " + "x" * 5000})
    result = tools.call("checkpoint_why", {"path": "long"})
    assert isinstance(result.data, Explained)
    assert (len(result.data.spans), result.data.total_spans) == (200, 600)
    assert 'checkpoint_why {"path": "long", "line": 41}' in result.output
    assert len(result.output) < 60_000


def test_why_answers_what_has_no_lines(tools: ToolHandlers, workspace: Path) -> None:
    fill(workspace / "data.bin", b"\0")
    for path, words in (
        (".", "the workspace, not a file"),
        ("src", "is a directory"),
        ("data.bin", "is a binary file"),
        ("nowhere", "is not in the workspace"),
        ("../x", "not a path inside"),
        ("/etc/passwd", "outside the workspace"),
        ("a\0b", "not a path inside"),
    ):
        result = tools.call("checkpoint_why", {"path": path})
        assert not result.success
        assert words in result.output
    beyond = tools.call("checkpoint_why", {"path": "notes.txt", "line": 7}).output
    assert "no line 7: " in beyond
