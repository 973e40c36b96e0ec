"""A client that closes its end gets the answers to its requests before the server ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from holdfast.interfaces.mcp import stdio
from holdfast.interfaces.mcp.stdio import OpenRequests, RequestStream
from tests.support.mcp_servers import command

pytestmark = pytest.mark.requirement("MC-2", "MC-4")

Message = dict[str, Any]


class Server:
    """A server as an agent starts it, talked to line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def begin(self, **capabilities: Any) -> None:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        }
        self.send({"id": "hello", "method": "initialize", "params": hello})
        self.send({"method": "notifications/initialized"})
        assert self.next()["id"] == "hello"

    def send(self, *messages: Message) -> None:
        assert self._process.stdin is not None
        lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
        self._process.stdin.write(b"".join(line + b"\n" for line in lines))
        self._process.stdin.flush()

    def next(self) -> Message:
        assert self._process.stdout is not None
        answer: Message = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> dict[int | str, Message]:
        """Close its input; what it says until it ends, by id."""
        said, _ = self._process.communicate(timeout=120)
        assert self._process.returncode == 0
        return {one["id"]: one for one in map(json.loads, said.splitlines())}


@contextmanager
def server_of(workspace: Path) -> Iterator[Server]:
    with subprocess.Popen(
        command(workspace), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def call(number: int | str, name: str, **arguments: Any) -> Message:
    params = {"name": name, "arguments": arguments}
    return {"id": number, "method": "tools/call", "params": params}


def text_of(answer: Message) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_requests_in_progress_are_finished_and_answered(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_LOCK_TIMEOUT", "300")  # twenty saves, however loaded the machine
    with server_of(workspace) as server:
        server.begin()
        calls = [call(n, "checkpoint_create", reasoning=f"number {n}") for n in range(20)]
        server.send({"id": "list", "method": "tools/list"}, *calls)
        answers = server.end()
    assert answers.keys() == {"list", *range(20)}
    assert "error" not in {key for answer in answers.values() for key in answer}
    assert not any(answers[n]["result"]["isError"] for n in range(20))


@pytest.mark.requirement("RB-3")
def test_a_restore_in_progress_is_finished_and_answered(workspace: Path) -> None:
    with server_of(workspace) as server:
        server.begin()
        server.send(call(1, "checkpoint_create", reasoning="before"))
        assert not server.next()["result"]["isError"]
        (workspace / "notes.txt").write_text("changed\n")
        server.send(call(2, "checkpoint_restore", ref="HEAD"))
        token = server.next()["result"]["structuredContent"]["confirm_token"]
        server.send(call(3, "checkpoint_restore", confirm_token=token))
        answer = server.end()[3]
    assert not answer["result"]["isError"]
    assert (workspace / "notes.txt").read_text() == "one\n"


def test_a_question_that_the_client_can_no_longer_answer_is_closed(workspace: Path) -> None:
    with server_of(workspace) as server:
        server.begin(elicitation={})
        server.send(call(1, "checkpoint_create", reasoning="before"))
        assert not server.next()["result"]["isError"]
        (workspace / "notes.txt").write_text("changed\n")
        server.send(call(2, "checkpoint_restore", ref="HEAD"))
        assert server.next()["method"] == "elicitation/create"
        answer = server.end()[2]
    assert "closed without an answer, so nothing was changed" in text_of(answer)
    assert (workspace / "notes.txt").read_text() == "changed\n"


def request(number: int, method: str) -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method=method)


def read_to_the_end(messages: list[JSONRPCMessage], answered: list[int]) -> int:
    """How many messages the stream has; some requests are answered when it has waited."""

    async def run() -> int:
        sending, receiving = anyio.create_memory_object_stream[SessionMessage](10)
        for message in messages:
            await sending.send(SessionMessage(message))
        await sending.aclose()
        requests, found = OpenRequests(), list[SessionMessage]()

        async def read() -> None:
            async for item in RequestStream(receiving, requests):
                found.append(item)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            for number in answered:
                await anyio.wait_all_tasks_blocked()
                requests.sent(JSONRPCResponse(jsonrpc="2.0", id=number, result={}))
        await receiving.aclose()
        return len(found)

    return anyio.run(run)


def test_the_stream_ends_when_the_last_request_is_answered() -> None:
    assert read_to_the_end([], []) == 0
    assert read_to_the_end([request(1, "ping"), request(2, "ping")], [2, 1]) == 2


def test_a_cancelled_request_and_a_subscription_hold_nothing_up() -> None:
    cancelled = JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}
    )
    subscription = request(2, "subscriptions/listen")
    assert read_to_the_end([request(1, "tools/call"), cancelled, subscription], []) == 3


def test_a_request_that_never_ends_holds_the_server_up_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "_LONGEST_END_S", 0)
    assert read_to_the_end([request(1, "tools/call")], []) == 1
