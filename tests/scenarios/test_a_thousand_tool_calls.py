"""An hour with a thousand tool calls: each state is there, exactly, and can be brought back."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.agent_events import AgentEvent, EventKind, ToolKind
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.engine.retention.cleanup import cleanup
from holdfast.ports.progress import NoProgress
from tests.support.agent_events import handle
from tests.support.clocks import pass_days
from tests.support.strides import strides
from tests.support.tree_hash import Node, describe, differences

CALLS = 1_000


@strides(7)
@pytest.mark.requirement("SE-11", "ST-2", "AU-1")
def test_a_thousand_tool_calls_within_an_hour_are_a_thousand_states(
    quick_disk: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random, stride: int
) -> None:
    project = quick_disk / "shop"
    for number in range(20):
        path = project / f"package{number % 4}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"price = {number}\n" * 20)
    # An independent copy of what each call found, and the checkpoint that the hook answered.
    states: list[tuple[str, dict[bytes, Node]]] = []
    for number in range(CALLS):
        path = rng.choice(sorted(project.rglob("module*.py")))
        command = f"sed -i s/price/cost{number}/ {path.name}"
        event = AgentEvent(
            "claude-code",
            "PreToolUse",
            EventKind.BEFORE_TOOL,
            session="busy",
            tool="Bash" if number % 2 else "Edit",
            tool_kind=ToolKind.SHELL if number % 2 else ToolKind.EDIT,
            command=command if number % 2 else "",
            paths=(str(path),),
            tool_use_id=f"call {number}",
            cwd=str(project),
        )
        before = describe(project)
        saved = handle(event).checkpoint
        assert saved is not None
        states.append((saved, before))
        path.write_text(f"price = {number}\n" + path.read_text()[:400])
        if number % 50 == 7:
            path.unlink()
            (project / f"package{number % 4}" / f"module_new{number}.py").write_text(command)
    assert len({saved for saved, _ in states}) == CALLS
    with open_workspace(project, create=False) as opened:
        kinds = (Kind.TOOL, Kind.RISKY, Kind.INITIAL)
        sessions = opened.engine.vault.catalog.sessions()
        (session,) = [one.id for one in sessions if one.id == SessionId("busy")]
        assert opened.engine.vault.catalog.count(session, kinds) >= CALLS
        cleanup(opened.engine, NoProgress())
    pass_days(monkeypatch, 3)
    with open_workspace(project, create=False) as opened:
        cleanup(opened.engine, NoProgress())
        for saved, state in states[::stride]:
            request = opened.engine.restore_request(SessionId("busy"), saved)
            opened.engine.restore(request)
            assert differences(describe(project), state) == [], saved
