"""The timeline as a resource: everything that happened, page by page."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions
from tests.support.mcp_servers import Era

pytestmark = pytest.mark.requirement("MC-1", "SE-9")


async def _page(client: Client, uri: str) -> dict[str, Any]:
    (content,) = (await client.read_resource(uri)).contents
    assert content.mime_type == "application/json"
    found: dict[str, Any] = json.loads(content.text)  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_everything_that_happened_comes_page_by_page(sessions: ServedSessions, era: Era) -> None:
    with sessions.handlers(None, None) as handlers:
        session = handlers.session
        made = session.checkpoint("the first")
        session.annotate("HEAD", "a note")
        for number in range(250):
            session.add_message("user", f"message {number}")
        session.checkpoint("the last")
        session.restore(made)
        expected = len(session.timeline(1000).events)

    async def run() -> list[dict[str, Any]]:
        server = make_server(sessions, Admission(time.monotonic_ns))
        events: list[dict[str, Any]] = []
        async with Client(server, mode=era) as client:
            uri: str | None = "holdfast://timeline"
            while uri is not None:
                page = await _page(client, uri)
                assert len(page["events"]) <= 100
                events += page["events"]
                uri = page["next"]
        return events

    events = anyio.run(run)
    assert len(events) == expected
    assert {event["type"] for event in events} >= {"message", "annotation", "restore"}
    messages = [event["content"] for event in events if event["type"] == "message"]
    assert messages == [f"message {number}" for number in reversed(range(250))]


@pytest.mark.parametrize("page", ["x", "%3F%3F", "W10", "bm90IGpzb24", "a" * 3000, "%FF"])
def test_a_page_that_is_none_is_answered_with_what_to_do(
    sessions: ServedSessions, page: str
) -> None:
    async def run() -> str:
        server = make_server(sessions, Admission(time.monotonic_ns))
        with sessions.handlers(None, None) as handlers:
            handlers.session.checkpoint("why")
        async with Client(server) as client:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"holdfast://timeline/{page}")
            return refused.value.error.message

    said = anyio.run(run)
    assert "not a position in a timeline" in said
    assert "Traceback" not in said
