"""Clients over HTTP that do not read their answers: bounded in bytes, and cut off in time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from holdfast.interfaces.mcp.response_backpressure import ResponseBackpressure

pytestmark = pytest.mark.requirement("MC-4")

SIZE = 16 << 20
"""More than the system keeps for a connection."""


async def _large(scope: Scope, receive: Receive, send: Send) -> None:
    size = SIZE if scope["path"] == "/large" else 10
    head = [(b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"x" * size})


@contextmanager
def _serving(unread: ResponseBackpressure) -> Iterator[int]:
    config = uvicorn.Config(
        unread.guarded(_large), http=unread.protocol(), log_config=None, lifespan="off"
    )
    server = uvicorn.Server(config)
    server.force_exit = True
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join()


def _ask(port: int, path: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.settimeout(60)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
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


class _Waited:
    """Told by the server's thread, waited for by the test's."""

    def __init__(self) -> None:
        self._told = threading.Event()

    def __call__(self) -> None:
        self._told.set()

    def wait(self) -> None:
        assert self._told.wait(60)
        self._told.clear()


def test_a_reader_gets_the_whole_answer() -> None:
    unread = ResponseBackpressure()
    with _serving(unread) as port:
        assert len(_read(_ask(port, "/large"))) > SIZE
        assert unread.cut_off == 0
        assert unread.has_room()


def test_who_does_not_read_is_cut_off_and_holds_nothing_any_more() -> None:
    told = _Waited()
    unread = ResponseBackpressure(patience_s=0.05, told=told)
    with _serving(unread) as port:
        client = _ask(port, "/large")
        while not unread.cut_off:
            told.wait()
        assert len(_read(client)) < SIZE
        assert unread.has_room()


def test_while_too_much_is_unread_others_are_told_to_come_back() -> None:
    told = _Waited()
    unread = ResponseBackpressure(most_bytes=1_000_000, patience_s=3600, told=told)
    with _serving(unread) as port:
        client = _ask(port, "/large")
        told.wait()
        refused = _read(_ask(port, "/small"))
        assert b" 503 " in refused.splitlines()[0]
        assert b"retry-after: 5" in refused
        assert len(_read(client)) > SIZE
        assert b" 200 " in _read(_ask(port, "/small")).splitlines()[0]
        assert unread.cut_off == 0


def test_who_goes_away_unread_holds_nothing_any_more() -> None:
    told = _Waited()
    unread = ResponseBackpressure(most_bytes=1_000_000, patience_s=3600, told=told)
    with _serving(unread) as port:
        client = _ask(port, "/large")
        told.wait()
        client.close()
        while b" 200 " not in _read(_ask(port, "/small")).splitlines()[0]:
            continue
        assert unread.has_room()
