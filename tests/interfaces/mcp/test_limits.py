"""A server takes on so much and no more, and everyone who asks gets an answer."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from holdfast.domain.errors import Busy
from holdfast.interfaces.mcp.http import LARGEST_BODY
from holdfast.interfaces.mcp.server import MOST_BYTES, Admission, make_server, weight
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.mcp.stdio import (
    LONGEST_LINE,
    AnswerQueue,
    CountedStream,
    _ignore_signals,
)
from tests.support.clocks import StandingClock
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import command, http_server, stdio_client

pytestmark = pytest.mark.requirement("MC-4")


def test_a_client_has_its_burst_and_then_its_rate() -> None:
    clock = StandingClock()
    admission = Admission(clock.monotonic_ns, burst=3, per_second=2)
    for _ in range(3):
        with admission.admit("ada", None):
            pass
    for _ in range(2):
        with pytest.raises(Busy) as busy, admission.admit("ada", None):
            pass
        assert busy.value.hint == "wait 0.50 seconds, then call again"
    with admission.admit("bob", None):
        pass
    clock.pass_seconds(0.5)
    with admission.admit("ada", None):
        pass
    with pytest.raises(Busy), admission.admit("ada", None):
        pass


def test_what_is_in_flight_is_bounded_and_given_back() -> None:
    assert MOST_BYTES == 100_000_000, "the default"
    admission = Admission(StandingClock().monotonic_ns, most_bytes=10_000, most_calls=2)
    with admission.admit("ada", {"a": "x" * 5000}):
        with (
            pytest.raises(Busy, match="too many calls at once"),
            admission.admit("ada", {"a": "x" * 5000}),
        ):
            pass
        with admission.admit("ada", {}), pytest.raises(Busy), admission.admit("ada", {}):
            pass
    with pytest.raises(ZeroDivisionError), admission.admit("ada", {"a": "x" * 5000}):
        _ = 1 / 0
    with admission.admit("ada", {"a": "x" * 5000}):
        pass


@pytest.mark.parametrize("value", [None, "x" * 1000, {"a": ["x" * 500, {"x" * 500: 1}]}, [[[1]]]])
def test_a_request_weighs_at_least_its_texts(value: Any) -> None:
    texts = sum(len(part) for part in json.dumps(value).split('"') if "x" in part)
    assert weight(value) >= texts


def test_a_thousand_calls_at_once_are_all_answered(sessions: ServedSessions) -> None:
    async def run() -> list[bool]:
        answers: list[bool] = []

        async def one(client: Client) -> None:
            result = await client.call_tool("checkpoint_stats", {})
            answers.append(not result.is_error)

        server = make_server(sessions, Admission(StandingClock().monotonic_ns, burst=900))
        async with Client(server) as client:
            await client.list_tools()
            async with anyio.create_task_group() as tasks:
                for _ in range(1000):
                    tasks.start_soon(one, client)
        return answers

    answers = anyio.run(run)
    assert len(answers) == 1000
    assert answers.count(False) == 100


def test_reading_is_limited_too(sessions: ServedSessions) -> None:
    async def run() -> None:
        server = make_server(sessions, Admission(StandingClock().monotonic_ns, burst=1))
        async with Client(server) as client:
            await client.read_resource("holdfast://timeline")
            with pytest.raises(MCPError, match="calls a second"):
                await client.read_resource("holdfast://timeline")

    anyio.run(run)


def test_a_call_that_is_cancelled_leaves_everything_in_order(
    sessions: ServedSessions, workspace: Path
) -> None:
    async def run() -> None:
        server = make_server(sessions, Admission(StandingClock().monotonic_ns, most_calls=1))
        async with Client(server) as client:
            for _ in range(5):
                with anyio.move_on_after(0):
                    await client.call_tool("checkpoint_create", {"reasoning": "cut off"})
            result = await client.call_tool("checkpoint_create", {"reasoning": "whole"})
            assert not result.is_error

    anyio.run(run)
    with sessions.handlers(None, None) as handlers:
        assert handlers.session.history()[0].intent.reasoning == "whole"


@pytest.mark.requirement("MC-2")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_thousand_calls_at_once_and_some_cut_off(workspace: Path, transport: str) -> None:
    """Through a process of its own: each call gets its own answer, and abandoned ones leave nothing
    behind that the others notice."""

    async def run(client: Client) -> None:
        answered: list[int] = []

        async def one(number: int) -> None:
            result = await client.call_tool("checkpoint_show", {"ref": f"none{number}"})
            text = result.content[0].text  # type: ignore[union-attr]
            # Beyond the burst a call is rejected with a hint to retry, which is an answer as well.
            assert f"'none{number}'" in text or "(busy)" in text, text
            answered.append(number)

        async def cut_off() -> None:
            with anyio.move_on_after(0):
                await client.call_tool("checkpoint_create", {"reasoning": "nobody waits"})

        await client.call_tool("checkpoint_create", {"reasoning": "first"})
        async with anyio.create_task_group() as tasks:
            for number in range(1000):
                tasks.start_soon(one, number)
                if number % 50 == 0:
                    tasks.start_soon(cut_off)
        assert sorted(answered) == list(range(1000))

    async def over_stdio() -> None:
        async with stdio_client(workspace) as client:
            await run(client)

    async def over_http() -> None:
        async with server.client() as client:
            await run(client)

    if transport == "stdio":
        anyio.run(over_stdio)
        return
    with http_server(workspace) as server:
        anyio.run(over_http)


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async def run() -> None:
        queue = AnswerQueue(most=2)
        sending, receiving = anyio.create_memory_object_stream[int]()
        counted = CountedStream(sending, queue)
        begun: list[int] = []

        async def call(number: int) -> None:
            async with queue.work():
                begun.append(number)
            await counted.send(number)

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(call, number)
            await anyio.wait_all_tasks_blocked()
            assert (begun, queue.waiting, queue.at_work) == ([0, 1], 2, 0)
            read = False

            async def next_line() -> None:
                nonlocal read
                await queue.room()
                read = True

            tasks.start_soon(next_line)
            await anyio.wait_all_tasks_blocked()
            assert not read
            got = [await receiving.receive() for _ in range(6)]
        await counted.aclose()
        await receiving.aclose()
        assert read
        assert sorted(got) == sorted(begun) == list(range(6))
        assert (queue.waiting, queue.at_work) == (0, 0)

    anyio.run(run)


def test_an_abandoned_answer_frees_its_room() -> None:
    async def run() -> None:
        queue = AnswerQueue(most=1)
        sending, receiving = anyio.create_memory_object_stream[int]()
        counted = CountedStream(sending, queue)
        with anyio.move_on_after(0):
            await counted.send(1)
        with anyio.move_on_after(0):
            async with queue.work():
                await anyio.sleep_forever()
        await queue.room()
        async with queue.work():
            assert queue.at_work == 1
        await counted.aclose()
        await receiving.aclose()

    anyio.run(run)


def test_answers_that_were_not_read_in_time_are_all_there_later(workspace: Path) -> None:
    """More than pipes hold: the server waits, and goes on when the client reads."""
    fill(workspace / "big", b"".join(b"old %d\n" % n for n in range(3000)))
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    sent = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _call(1, "checkpoint_create", reasoning="before"),
    ]
    with subprocess.Popen(
        command(workspace), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in sent:
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        begun = {one["id"]: one for one in (json.loads(process.stdout.readline()) for _ in "ab")}
        assert begun.keys() == {0, 1}
        assert begun[0]["result"]["protocolVersion"] == hello["protocolVersion"]
        fill(workspace / "big", b"".join(b"new %d\n" % n for n in range(3000)))
        for number in range(2, 82):
            line = json.dumps(_call(number, "checkpoint_diff", content=True))
            process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(80)]
        assert {answer["id"] for answer in answers} == set(range(2, 82))
        assert not any(answer["result"]["isError"] for answer in answers)
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def _call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_a_body_beyond_the_limit_is_refused(workspace: Path) -> None:
    with http_server(workspace) as server:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "pad": "x" * LARGEST_BODY}
        assert server.post(body, authorization=f"Bearer {server.token}").status_code == 413


def test_lines_that_are_no_requests_do_not_stop_the_server(workspace: Path) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    sent = b"".join(
        [
            b"not json\n",
            b"\xff\xfe\n",
            b"x" * (3 * LONGEST_LINE) + b"\n",
            json.dumps(hello).encode() + b"\n",
        ]
    )
    with subprocess.Popen(
        command(workspace),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(sent)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline())]
        while answers[-1].get("id") != 7:
            answers.append(json.loads(process.stdout.readline()))
        assert answers[-1]["result"]["serverInfo"]["name"] == "holdfast"
        process.stdin.close()
        assert process.wait(timeout=60) == 0


@pytest.mark.requirement("MC-2")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyboardInterrupt(), False),
        (BaseExceptionGroup("tasks", [KeyboardInterrupt()]), False),
        (BaseExceptionGroup("tasks", [KeyboardInterrupt(), ValueError()]), True),
        (ValueError(), True),
        (None, True),
    ],
)
def test_a_task_that_a_signal_unwound_is_not_reported_as_an_error(
    error: BaseException | None, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.new_event_loop()
    _ignore_signals(loop, {"message": "it ended"} | ({"exception": error} if error else {}))
    loop.close()
    assert bool(caplog.records) == told


@pytest.mark.requirement("MC-2")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_asked_to_end_ends(workspace: Path, number: signal.Signals) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with subprocess.Popen(
        command(workspace),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number
        assert b"Traceback" not in process.stderr.read()


def test_sessions_are_kept_up_to_a_bound_and_closed_when_unused(
    sessions: ServedSessions,
) -> None:
    with sessions.handlers(None, "kept", create=True) as kept:
        for number in range(40):
            with sessions.handlers(None, f"session-{number}", create=True) as handlers:
                handlers.call("checkpoint_stats")
        assert kept.call("checkpoint_create", {"reasoning": "still open"}).success
    with sessions.handlers(None, "kept") as again:
        assert again is not kept
        assert again.session.checkpoint_count == 1


def test_sessions_are_shared_by_threads(sessions: ServedSessions) -> None:
    begin = threading.Barrier(8)
    seen: list[object] = []

    def use() -> None:
        begin.wait()
        with sessions.handlers(None, None) as handlers:
            seen.append(handlers)
            assert handlers.call("checkpoint_stats").success

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len(set(map(id, seen))) == 1
