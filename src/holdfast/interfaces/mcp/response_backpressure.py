"""Backpressure over HTTP: how much unread response data is held, and for how long.

    the buffer of a connection is full  → its bytes count, and a clock runs
    it drains                           → neither does any more
    too many bytes in all               → new requests get 503 with Retry-After
    the clock runs out                  → the connection is cut off, and its bytes are free

So clients that do not read cost a bounded amount of memory, for a bounded time. One event loop uses
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

MOST_UNREAD_BYTES = 50_000_000
MOST_CONNECTIONS = 1_500
PATIENCE_S = 60.0
_FULL_BYTES = 32 * 1024
"""What a connection may hold without being counted; times the connections, that is bounded too."""

if TYPE_CHECKING:
    _Protocol = asyncio.Protocol
else:
    _Protocol = AutoHTTPProtocol


class ResponseBackpressure:
    """Of all connections of one server."""

    def __init__(
        self,
        *,
        most_bytes: int = MOST_UNREAD_BYTES,
        patience_s: float = PATIENCE_S,
        told: Callable[[], None] | None = None,
    ) -> None:
        """`told` is called when a connection was found full, or was cut off."""
        self._most_bytes = most_bytes
        self._patience_s = patience_s
        self._told = told
        self._full: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        self.cut_off = 0

    def has_room(self) -> bool:
        return sum(each.get_write_buffer_size() for each in self._full) < self._most_bytes

    def is_full(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        self._full[transport] = loop.call_later(self._patience_s, self._cut_off, transport)
        self._tell()

    def has_drained(self, transport: asyncio.Transport) -> None:
        """Or is gone; in any case."""
        timer = self._full.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def _cut_off(self, transport: asyncio.Transport) -> None:
        self._full.pop(transport, None)
        self.cut_off += 1
        transport.abort()  # closing would wait for the reader
        self._tell()

    def _tell(self) -> None:
        if self._told is not None:
            self._told()

    def protocol(self) -> type[asyncio.Protocol]:
        """The protocol of a connection, which reports here."""
        unread = self

        class Reporting(_Protocol):
            _connection: asyncio.Transport | None = None

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                if isinstance(transport, asyncio.Transport):
                    self._connection = transport
                    transport.set_write_buffer_limits(high=_FULL_BYTES)
                super().connection_made(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                if self._connection is not None:
                    unread.has_drained(self._connection)
                super().connection_lost(exc)

            def pause_writing(self) -> None:
                if self._connection is not None:
                    unread.is_full(self._connection)
                super().pause_writing()

            def resume_writing(self) -> None:
                if self._connection is not None:
                    unread.has_drained(self._connection)
                super().resume_writing()

        return Reporting

    def guarded(self, app: ASGIApp) -> ASGIApp:
        """New requests are let in while there is room."""

        async def choose(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or self.has_room():
                await app(scope, receive, send)
                return
            head: list[Any] = [(b"retry-after", b"5"), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 503, "headers": head})
            await send({"type": "http.response.body", "body": b""})

        return choose
