"""Timeouts for HTTP requests that clients begin and do not finish.

    a connection opens, or a request on it begins  → a clock runs
    the request is there to its last byte          → it does not any more
    the clock runs out, or too many are running    → the connection is cut off, the oldest first

So slow clients, which need no token, do not take places from others for long. The server itself
closes connections that wait between two requests. One event loop uses it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

MOST_INCOMPLETE = 500
PATIENCE_S = 30.0
_BODIES = (b"content-length", b"transfer-encoding")

if TYPE_CHECKING:

    class _Protocol(asyncio.Protocol):
        """What a protocol of the server is made of."""

        app: ASGIApp

        def __init__(self, *given: Any, **named: Any) -> None: ...
else:
    _Protocol = AutoHTTPProtocol


class RequestTimeouts:
    """Of all connections of one server."""

    def __init__(
        self,
        *,
        most: int = MOST_INCOMPLETE,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._most = most
        self.patience_s = patience_s
        self._waiting: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        self.cut_off = 0

    @property
    def waiting(self) -> int:
        """How many are waited for."""
        return len(self._waiting)

    def begins(self, transport: asyncio.Transport) -> None:
        """A request may be on its way; the clock of one that has begun goes on."""
        if transport in self._waiting:
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.patience_s, self._cut_off, transport)
        self._waiting[transport] = timer
        if len(self._waiting) > self._most:
            self._cut_off(next(iter(self._waiting)))

    def is_whole(self, transport: asyncio.Transport) -> None:
        """Or its connection is gone."""
        timer = self._waiting.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def _cut_off(self, transport: asyncio.Transport) -> None:
        self.is_whole(transport)
        self.cut_off += 1
        transport.abort()

    def protocol(self, base: type[asyncio.Protocol] = _Protocol) -> type[asyncio.Protocol]:
        """The protocol of a connection, which reports here."""
        requests = self
        kind: type[_Protocol] = base  # type: ignore[assignment]

        class Watched(kind):  # type: ignore[valid-type, misc]
            _connection: asyncio.Transport | None = None
            _serving = False

            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                self._inner, self.app = self.app, self._serve  # type: ignore[has-type]

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                if isinstance(transport, asyncio.Transport):
                    self._connection = transport
                    requests.begins(transport)
                super().connection_made(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                if self._connection is not None:
                    requests.is_whole(self._connection)
                super().connection_lost(exc)

            def data_received(self, data: bytes) -> None:
                if self._connection is not None and not self._serving:
                    requests.begins(self._connection)
                super().data_received(data)

            async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
                connection = self._connection
                if scope["type"] != "http" or connection is None:
                    await self._inner(scope, receive, send)
                    return
                self._serving = True
                if any(name in _BODIES for name, _ in scope["headers"]):
                    requests.begins(connection)
                else:
                    requests.is_whole(connection)

                async def received() -> Message:
                    message = await receive()
                    if not message.get("more_body", False):
                        requests.is_whole(connection)
                    return message

                try:
                    await self._inner(scope, received, send)
                finally:
                    self._serving = False
                    requests.is_whole(connection)

        return Watched
