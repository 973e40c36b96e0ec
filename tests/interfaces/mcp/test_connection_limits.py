"""HTTP clients that do not finish their requests, or do not read their answers, are bounded."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from holdfast.interfaces.mcp.connection_limits import ConnectionLimits

pytestmark = pytest.mark.requirement("MC-4")

BEGUN = {
    "nothing": b"",
    "half a line": b"POST /ec",
    "half a head": b"POST /echo HTTP/1.1\r\nHost: x\r\n",
    "half a body": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
    "half a piece": b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
}
ANSWERED = {
    "a second one": (b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /echo HT"),
    "a body that nobody reads": (
        b"POST /deaf HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
        b"half",
    ),
}
SIZE = 16 << 20
"""More than the system keeps for a connection."""
WHOLE = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with what it is sent, and at /deaf without reading it."""
    body, more = b"", scope["path"] != "/deaf"
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    head = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def _stream(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer without end, until the client has gone."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        continue


async def _large(scope: Scope, receive: Receive, send: Send) -> None:
    size = SIZE if scope["path"] == "/large" else 10
    head = [(b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"x" * size})


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    apps = {"/stream": _stream, "/large": _large, "/small": _large}
    await apps.get(scope["path"], _echo)(scope, receive, send)


@contextmanager
def _serving(limits: ConnectionLimits) -> Iterator[int]:
    config = uvicorn.Config(
        limits.guarded(_app),
        http=limits.protocol(),
        log_config=None,
        lifespan="off",
        timeout_keep_alive=600,
    )
    server = uvicorn.Server(config)
    server.force_exit = True
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        port: int = listening.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join()


def _begin(port: int, data: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.settimeout(60)
    with suppress(ConnectionError):  # cut off before
        client.sendall(data)
    return client


def _read(client: socket.socket) -> bytes:
    """Everything that comes, until the other side closes or breaks off."""
    got = b""
    with client:
        try:
            while piece := client.recv(1 << 20):
                got += piece
        except ConnectionResetError:
            return got
    return got


def _ask(port: int, path: str) -> socket.socket:
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    return _begin(port, head.encode())


def _wait_until(is_so: Callable[[], bool]) -> None:
    """The server's thread makes it so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("begun", BEGUN)
def test_a_request_that_is_not_finished_is_cut_off(begun: str) -> None:
    limits = ConnectionLimits(request_s=0.05)
    with _serving(limits) as port:
        assert _read(_begin(port, BEGUN[begun])) == b""
        assert limits.incomplete.cut_off == 1


@pytest.mark.parametrize("begun", ANSWERED)
def test_what_is_not_finished_behind_an_answer_is_cut_off(begun: str) -> None:
    limits = ConnectionLimits(request_s=3600)
    whole, half = ANSWERED[begun]
    with _serving(limits) as port:
        client = _begin(port, whole)
        got = b""
        while not got.endswith(b"\r\n\r\n"):
            got += client.recv(1 << 16)
        assert got.startswith(b"HTTP/1.1 200")
        limits.incomplete.patience_s = 0.05
        client.sendall(half)
        assert _read(client) == b""
        assert limits.incomplete.cut_off == 1


def test_newcomers_take_the_place_of_those_that_wait_longest() -> None:
    limits = ConnectionLimits(most_incomplete=5, request_s=3600)
    with _serving(limits) as port, ExitStack() as kept:
        slow = [kept.enter_context(_begin(port, BEGUN["half a head"])) for _ in range(20)]
        assert _read(_begin(port, WHOLE)).endswith(b"\r\n\r\nbody")
        assert _read(slow[0]) == b""
        assert limits.incomplete.cut_off >= 15


def test_a_whole_request_is_answered_however_long_that_takes() -> None:
    limits = ConnectionLimits(request_s=3600)
    with _serving(limits) as port, ExitStack() as kept:
        stream = kept.enter_context(
            _begin(port, b"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        )
        got = b""
        while b"first" not in got:
            got += stream.recv(1 << 16)
        assert limits.incomplete.running == {}
        assert limits.incomplete.cut_off == 0


def test_a_reader_gets_the_whole_answer() -> None:
    limits = ConnectionLimits()
    with _serving(limits) as port:
        assert len(_read(_ask(port, "/large"))) > SIZE
        assert limits.unread.cut_off == 0
        assert limits.has_room()


def test_who_does_not_read_is_cut_off_and_holds_nothing() -> None:
    limits = ConnectionLimits(unread_s=0.05)
    with _serving(limits) as port:
        client = _ask(port, "/large")
        _wait_until(lambda: limits.unread.cut_off == 1)
        assert len(_read(client)) < SIZE
        assert limits.has_room()


def test_while_too_much_is_unread_others_are_asked_to_come_back() -> None:
    limits = ConnectionLimits(most_unread_bytes=1_000_000, unread_s=3600)
    with _serving(limits) as port:
        client = _ask(port, "/large")
        _wait_until(lambda: not limits.has_room())
        refused = _read(_ask(port, "/small"))
        assert b" 503 " in refused.splitlines()[0]
        assert b"retry-after: 5" in refused
        assert len(_read(client)) > SIZE
        assert b" 200 " in _read(_ask(port, "/small")).splitlines()[0]
        assert limits.unread.cut_off == 0


def test_who_goes_away_unread_holds_nothing() -> None:
    limits = ConnectionLimits(most_unread_bytes=1_000_000, unread_s=3600)
    with _serving(limits) as port:
        client = _ask(port, "/large")
        _wait_until(lambda: not limits.has_room())
        client.close()
        while b" 200 " not in _read(_ask(port, "/small")).splitlines()[0]:
            continue
        assert limits.has_room()


def test_above_a_number_of_connections_new_requests_are_asked_to_come_back() -> None:
    limits = ConnectionLimits(most_connections=2)
    with _serving(limits) as port, ExitStack() as kept:
        for _ in range(2):
            kept.enter_context(_begin(port, b""))
        _wait_until(lambda: limits.connections == 2)
        refused = _read(_ask(port, "/small"))
        assert b" 503 " in refused.splitlines()[0]
        assert b"retry-after: 5" in refused
        kept.close()
        _wait_until(lambda: limits.connections == 0)
        assert b" 200 " in _read(_ask(port, "/small")).splitlines()[0]
