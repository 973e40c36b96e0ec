"""Edits that an agent reports with its hooks are in the timeline, with their diff."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.agent_events import AgentEvent, EventKind, ToolKind
from holdfast.domain.timeline.timeline import EventType
from tests.support.agent_events import handle

BEFORE, AFTER = EventKind.BEFORE_TOOL, EventKind.AFTER_TOOL


def _edit(project: Path, kind: EventKind, *paths: str, use: str = "t1") -> AgentEvent:
    return AgentEvent(
        "gemini",
        "hook",
        kind,
        session="s1",
        tool="write_file",
        tool_kind=ToolKind.WRITE,
        paths=paths,
        tool_use_id=use,
        cwd=str(project),
        received_ns=time.time_ns(),
    )


def _message(project: Path, text: str) -> AgentEvent:
    return AgentEvent(
        "gemini", "hook", EventKind.MESSAGE, session="s1", prompt=text, cwd=str(project)
    )


@pytest.mark.requirement("SE-6", "SE-9")
def test_an_edit_that_a_hook_reports_is_recorded_with_diff_and_message(project: Path) -> None:
    handle(_message(project, "make it cheaper"))
    handle(_edit(project, BEFORE, "src/app.py"))
    (project / "src/app.py").write_text("cheap\n")
    for _ in range(2):  # delivered twice
        handle(_edit(project, AFTER, str(project / "src/app.py")))
    with SessionCheckpointer.load(project, "s1") as session:
        (edit,) = session.activities()
        assert (edit.kind.value, edit.status.value) == ("edit", "kept")
        assert (edit.paths, edit.message_index) == ((b"src/app.py",), 0)
        assert edit.reason == "write_file: src/app.py"
        diff = session.edit_diff(edit.number)
        assert diff is not None
        assert "--- a/src/app.py\n+++ b/src/app.py\n" in diff
        assert "+cheap\n" in diff
        told = [e.activity for e in session.timeline().events if e.type is EventType.EDIT]
        assert told == [edit]
        assert not session.open_edits()


@pytest.mark.requirement("SE-6")
def test_calls_that_edit_nothing_of_the_workspace_are_not_recorded(
    project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "elsewhere.txt"
    handle(_edit(project, BEFORE, "src/app.py", str(outside)))
    outside.write_text("new\n")
    handle(_edit(project, AFTER, "src/app.py", str(outside)))
    handle(_edit(project, AFTER, "src/app.py", use="t2"))
    handle(_edit(project, BEFORE, "src/app.py", use="t3"))
    (project / "src/app.py").write_text("half\n")
    handle(_edit(project, AFTER, "src/app.py", use="t3")._replace(failure="timed out"))
    with SessionCheckpointer.load(project, "s1") as session:
        assert session.activities() == []
