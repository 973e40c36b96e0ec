"""The notice of a restore reaches the agent with an answer, and is not lost on the way."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.mcp.tools import ServedTools
from holdfast.tools import ToolHandlers
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import Era

pytestmark = pytest.mark.requirement("RB-10")

BOTH = pytest.mark.parametrize("era", ["legacy", "auto"])
TOLD = "The workspace was restored to an earlier state"


def undone_by_a_person(sessions: ServedSessions, workspace: Path) -> None:
    """By another session, while the agent was at work."""
    with sessions.handlers(None, None) as handlers:
        handlers.session.checkpoint("good")
        fill(workspace / "src" / "app.py", b"worse")
        handlers.session.restore("HEAD")
    fill(workspace / "notes.txt", b"two\n")


def text_of(result: CallToolResult) -> str:
    return result.content[0].text  # type: ignore[union-attr]


@BOTH
@pytest.mark.parametrize(
    "address",
    ["holdfast://checkpoints", "holdfast://diff/HEAD/workspace", "holdfast://timeline"],
)
def test_reading_a_resource_takes_nothing_away_from_the_agent(
    sessions: ServedSessions, workspace: Path, era: Era, address: str
) -> None:
    undone_by_a_person(sessions, workspace)

    async def run() -> None:
        server = make_server(sessions, Admission(time.monotonic_ns))
        async with Client(server, mode=era) as client:
            read: Any = (await client.read_resource(address)).contents[0]
            assert TOLD not in read.text
            assert TOLD in text_of(await client.call_tool("checkpoint_stats"))
            assert TOLD not in text_of(await client.call_tool("checkpoint_stats"))

    anyio.run(run)


@BOTH
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_the_agent_is_notified_and_not_only_the_person_who_is_asked(
    sessions: ServedSessions, workspace: Path, era: Era, action: Literal["accept", "decline"]
) -> None:
    undone_by_a_person(sessions, workspace)
    asked: list[str] = []

    async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={"confirm": True})

    async def run() -> None:
        server = make_server(sessions, Admission(time.monotonic_ns))
        async with Client(server, mode=era, elicitation_callback=ask) as client:
            result = await client.call_tool("checkpoint_restore", {"ref": "HEAD"})
            assert TOLD in text_of(result)
            assert TOLD not in text_of(await client.call_tool("checkpoint_stats"))

    anyio.run(run)
    (question,) = asked
    assert TOLD not in question


@BOTH
def test_the_agent_is_notified_also_when_there_is_nothing_to_ask(
    sessions: ServedSessions, workspace: Path, era: Era
) -> None:
    undone_by_a_person(sessions, workspace)
    fill(workspace / "notes.txt", b"one\n")

    async def run() -> None:
        server = make_server(sessions, Admission(time.monotonic_ns))

        async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
            raise AssertionError("nobody is to be asked")

        async with Client(server, mode=era, elicitation_callback=ask) as client:
            assert TOLD in text_of(await client.call_tool("checkpoint_restore", {"ref": "HEAD"}))

    anyio.run(run)


@pytest.mark.requirement("MC-1")
def test_a_restore_whose_call_was_cancelled_is_reported_with_the_next_answer(
    sessions: ServedSessions, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.handlers(None, None) as handlers:
        handlers.session.checkpoint("good")
        fill(workspace / "src" / "app.py", b"worse")
        shown: Any = handlers.call("checkpoint_restore", {"ref": "HEAD"}).data
    done, cancelled = threading.Event(), threading.Event()
    answer = ToolHandlers.answer

    def slow(handlers: ToolHandlers, *given: Any) -> Any:
        answered = answer(handlers, *given)
        done.set()
        assert cancelled.wait(60)
        return answered

    tools = ServedTools(sessions)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            deed = {"confirm_token": shown.confirm_token}
            tasks.start_soon(tools.call, "checkpoint_restore", deed)
            await anyio.to_thread.run_sync(done.wait)
            tasks.cancel_scope.cancel()
            cancelled.set()

    with monkeypatch.context() as patched:
        patched.setattr(ToolHandlers, "answer", slow)
        anyio.run(run)
    assert (workspace / "src" / "app.py").read_bytes() == b"print(1)\n"
    with sessions.handlers(None, None) as handlers:
        assert TOLD in handlers.call("checkpoint_stats").output
        assert TOLD not in handlers.call("checkpoint_stats").output
