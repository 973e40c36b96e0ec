"""Calls have an id and can be awaited; comparisons and previews say why each state was saved."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.tools.diff import Compared
from holdfast.tools import ToolHandlers, ToolResult
from tests.interfaces.tools.calls import done
from tests.support.hostile_trees import fill


@pytest.mark.requirement("CP-10")
def test_a_call_without_an_id_gets_one_of_its_own(tools: ToolHandlers) -> None:
    answers = [
        tools.call("checkpoint_create", {"reasoning": "one"}),
        tools.call("checkpoint_history"),
        tools.call("no_such_tool"),
    ]
    ids = [answer.tool_call_id for answer in answers]
    assert all(isinstance(one, str) and one for one in ids)
    assert len(set(ids)) == len(ids)
    assert tools.call("checkpoint_history", {}, "mine").tool_call_id == "mine"


@pytest.mark.requirement("CP-10")
def test_calls_can_be_awaited(tools: ToolHandlers, session: SessionCheckpointer) -> None:
    async def agent() -> list[ToolResult]:
        first = await tools.call("checkpoint_create", {"reasoning": "one", "name": "one"})
        others = await asyncio.gather(
            tools.acall("checkpoint_create", {"reasoning": "two"}),
            tools.acall("checkpoint_history", {"limit": 0}, "mine"),
        )
        return [first, *others]

    first, second, refused = asyncio.run(agent())
    assert first.success
    assert second.success
    assert (refused.success, refused.tool_call_id) == (False, "mine")
    assert session.checkpoint_count == 2


@pytest.mark.requirement("CP-10", "BX-8")
def test_a_comparison_gives_both_reasons(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("callbacks everywhere", name="callbacks")
    fill(workspace / "notes.txt", b"two\n")
    session.checkpoint("async and await", name="async")
    chosen = {"from_checkpoint": "callbacks", "to_checkpoint": "async"}
    text, compared = done(tools, "checkpoint_diff", Compared, **chosen)
    assert (compared.from_reason, compared.to_reason) == ("callbacks everywhere", "async and await")
    assert "callbacks everywhere" in text
    assert "async and await" in text
    _, compared = done(tools, "checkpoint_diff", Compared, from_checkpoint="callbacks")
    assert (compared.from_reason, compared.to_reason) == ("callbacks everywhere", None)


@pytest.mark.requirement("BX-8")
def test_checkpoints_of_two_sessions_are_compared(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    with SessionCheckpointer(workspace, "other") as other:
        other.checkpoint("their way", name="theirs")
    fill(workspace / "notes.txt", b"two\n")
    session.checkpoint("our way", name="ours")
    chosen = {"from_checkpoint": "other:theirs", "to_checkpoint": "agent:ours"}
    _, compared = done(tools, "checkpoint_diff", Compared, **chosen)
    assert [change.path for change in compared.changes] == ["notes.txt"]
    assert (compared.from_reason, compared.to_reason) == ("their way", "our way")


@pytest.mark.requirement("RB-1")
def test_a_preview_shows_what_is_noted_about_the_target(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("one", name="one")
    session.annotate("one", "the login works here")
    fill(workspace / "notes.txt", b"two\n")
    answer = tools.call("checkpoint_restore", {"checkpoint": "one"})
    assert "the login works here" in answer.output
