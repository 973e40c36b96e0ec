"""Limits for slow HTTP clients: bounded memory, connections and time.

    a connection opens, or a request on it begins   → a timer starts
    the request has arrived completely              → it stops
    the send buffer of a connection is full         → its bytes count, and another timer starts
    the buffer drains                               → both stop
    a timer expires, or too many requests are open  → the connection is aborted, the oldest first
    too many connections, or unread bytes in total  → new requests get 503 with Retry-After

These limits need no token. The server itself closes idle connections between requests. One event
loop uses it.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.domain.errors import Refused

MOST_CONNECTIONS = 1_500
REFUSAL_HEADERS = {"retry-after": "5", "connection": "close"}
MOST_UNREAD_BYTES = 50_000_000
UNREAD_S = 60.0
MOST_INCOMPLETE = 500
REQUEST_S = 30.0
_FULL_BYTES = 32 * 1024
"""The bytes that a connection may buffer without being counted; the number of connections bounds
the sum."""
_BODIES = (b"content-length", b"transfer-encoding")

if TYPE_CHECKING:

    class _HttpProtocol(asyncio.Protocol):
        """The parts of the server's protocol that are used here."""

        app: ASGIApp

        def __init__(self, *given: Any, **named: Any) -> None: ...
else:
    # Always this one: the parser that uvicorn prefers, if it is installed, does not limit the size
    # of headers.
    _HttpProtocol = H11Protocol


class ConnectionTimers:
    """Connections with a running timer. If it expires, the connection is aborted."""

    def __init__(self, patience_s: float, most: int | None = None) -> None:
        self.patience_s = patience_s
        self._most = most
        self.running: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        self.cut_off = 0

    def start(self, transport: asyncio.Transport) -> None:
        """A running timer continues."""
        if transport in self.running:
            return
        loop = asyncio.get_running_loop()
        self.running[transport] = loop.call_later(self.patience_s, self._expire, transport)
        if self._most is not None and len(self.running) > self._most:
            self._expire(next(iter(self.running)))

    def stop(self, transport: asyncio.Transport) -> None:
        timer = self.running.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def _expire(self, transport: asyncio.Transport) -> None:
        self.stop(transport)
        self.cut_off += 1
        transport.abort()  # closing would wait for the reader


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(None, 503, REFUSAL_HEADERS)(scope, receive, send)


class ConnectionLimits:
    """For all connections of one server: `incomplete` requests, and `unread` answers."""

    def __init__(
        self,
        *,
        most_connections: int = MOST_CONNECTIONS,
        most_incomplete: int = MOST_INCOMPLETE,
        request_s: float = REQUEST_S,
        most_unread_bytes: int = MOST_UNREAD_BYTES,
        unread_s: float = UNREAD_S,
    ) -> None:
        self.incomplete = ConnectionTimers(request_s, most_incomplete)
        self.unread = ConnectionTimers(unread_s)
        self._most_unread_bytes = most_unread_bytes
        self.most_connections = most_connections
        self.connections = 0

    def unread_bytes(self) -> int:
        return sum(each.get_write_buffer_size() for each in list(self.unread.running))

    def has_room(self) -> bool:
        if self.connections > self.most_connections:
            return False
        return self.unread_bytes() < self._most_unread_bytes

    def guarded(self, app: ASGIApp, refusal: ASGIApp | None = None) -> ASGIApp:
        """Accept new requests while there is room. Others get the `refusal`: status 503, with
        `REFUSAL_HEADERS`."""
        refuse = _refuse if refusal is None else refusal

        async def choose(scope: Scope, receive: Receive, send: Send) -> None:
            chosen = app if scope["type"] != "http" or self.has_room() else refuse
            await chosen(scope, receive, send)

        return choose

    def protocol(self) -> type[asyncio.Protocol]:
        """The protocol class of a connection, which reports here."""
        incomplete, unread, limits = self.incomplete, self.unread, self

        class Watched(_HttpProtocol):
            _connection: asyncio.Transport
            _serving = False

            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                self._inner, self.app = self.app, self._serve

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self._connection = cast("asyncio.Transport", transport)
                self._connection.set_write_buffer_limits(high=_FULL_BYTES)
                limits.connections += 1
                incomplete.start(self._connection)
                super().connection_made(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                limits.connections -= 1
                incomplete.stop(self._connection)
                unread.stop(self._connection)
                super().connection_lost(exc)

            def pause_writing(self) -> None:
                unread.start(self._connection)
                super().pause_writing()

            def resume_writing(self) -> None:
                unread.stop(self._connection)
                super().resume_writing()

            def data_received(self, data: bytes) -> None:
                if not self._serving:
                    incomplete.start(self._connection)
                super().data_received(data)

            async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
                if scope["type"] != "http":
                    await self._inner(scope, receive, send)
                    return
                self._serving = True
                if any(name in _BODIES for name, _ in scope["headers"]):
                    incomplete.start(self._connection)
                else:
                    incomplete.stop(self._connection)

                async def received() -> Message:
                    message = await receive()
                    if not message.get("more_body", False):
                        incomplete.stop(self._connection)
                    return message

                try:
                    await self._inner(scope, received, send)
                finally:
                    self._serving = False
                    incomplete.stop(self._connection)

        return Watched


def listen(host: str, port: int) -> socket.socket:
    """The socket of a server. Raises `Refused` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
        # Connections inherit it. asyncio sets it only on sockets that name TCP explicitly, and an
        # answer in two writes would wait 40 ms for the acknowledgement of the first.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise Refused(
            f"cannot listen on {host}, port {port}: {error}",
            hint="use another port with --port, or 0 for any free port",
        ) from None
