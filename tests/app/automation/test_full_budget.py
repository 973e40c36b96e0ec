"""A budget that is used up, and directories that are no project, met in a session of an agent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.domain.agent_events import AgentEvent, EventKind, ToolKind
from holdfast.domain.errors import WorkspaceRefused
from holdfast.domain.ids import SessionId
from holdfast.interfaces.hooks.runtime_files import event_handler
from tests.interfaces.cli.command_line import CommandLine
from tests.support.agent_events import handle
from tests.support.composition import configure
from tests.support.hostile_trees import fill, noise


def before_edit(cwd: Path, number: int) -> AgentEvent:
    return AgentEvent(
        "claude-code",
        "PreToolUse",
        EventKind.BEFORE_TOOL,
        session="work",
        tool="Edit",
        tool_kind=ToolKind.EDIT,
        paths=(str(cwd / "source.py"),),
        tool_use_id=f"call {number}",
        cwd=str(cwd),
        carries=True,
    )


@pytest.mark.requirement("ST-3", "HK-7")
def test_at_a_full_budget_edits_are_saved_and_the_session_is_notified_once_what_is_not(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shop"
    fill(project / "source.py", b"0")
    configure(project, budget=1_000_000)
    told: list[str] = []
    saved: list[str] = []
    for number in range(6):
        fill(project / "source.py", b"edit %d" % number)
        fill(project / "bundle.js", noise(600_000, number))
        event = before_edit(project, number)
        reply = handle(event)
        assert reply.checkpoint is not None
        saved.append(reply.checkpoint)
        told += [notice.code for notice in reply.notices]
        event_handler(os.environ).notices.note_delivered(event, reply.notices)
    assert told == ["without:no room in the disk budget"]
    assert len(set(saved)) == 6
    cli = CommandLine(project)
    for number, checkpoint in enumerate(saved):
        answer = cli("restore", checkpoint, "--session", "work", "--yes", "source.py")
        assert answer.status == 0, answer
        assert (project / "source.py").read_bytes() == b"edit %d" % number
    assert SessionId("work") in {SessionId(one["session_id"]) for one in cli.json("log")}


@pytest.mark.requirement("ST-3", "HK-7")
@pytest.mark.parametrize("place", ["home", "root"])
def test_an_agent_in_the_home_directory_is_refused_with_the_way_out(place: str) -> None:
    directory = Path.home() if place == "home" else Path("/")
    with pytest.raises(WorkspaceRefused, match="not a project") as refused:
        handle(before_edit(directory, 1))
    assert refused.value.hint is not None
    assert "a project directory" in refused.value.hint
    assert not (directory / ".holdfast").exists()
