"""The server over standard input and output, as agents start it.

The protocol owns both streams while the server runs. Child processes read an empty input, and their
output goes to standard error. Lines over the size limit are skipped to bound memory, and their
sender gets an error. Waiting for the next line blocks nothing, so SIGTERM ends the server.

    too many answers wait to be written ──► no requests are read, and no work is begun

So a client that does not read costs a bounded number of answers in memory. Its open requests are
answered when it reads again. One event loop uses it.

At the end of input, open requests are finished and answered, within ten minutes. The client can no
longer answer questions, so they count as closed without an answer. Only then does the server end.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

MOST_WAITING = 256
LONGEST_LINE = 4 * 1024 * 1024
_PIECE_BYTES = 64 * 1024
_LONGEST_END_S = 600
_NEVER_ANSWERED = ("subscriptions/listen",)
"""Requests that stay open until the client is gone."""
_TOO_LONG = b'{"jsonrpc": "2.0", "error": "the line is longer than a request may be"}\n'


class AnswerQueue:
    """The number of answers that wait, and that are being made."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most = most
        self._freed = anyio.Event()
        self.waiting = self.at_work = 0

    async def room(self) -> None:
        """Wait until another request may be read."""
        while self.waiting >= self._most:
            await self._freed.wait()

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """Wait until there is room for the answer that the block makes."""
        while self.waiting + self.at_work >= self._most:
            await self._freed.wait()
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1
            self._wake()

    def entered(self) -> None:
        self.waiting += 1

    def left(self) -> None:
        self.waiting -= 1
        self._wake()

    def _wake(self) -> None:
        self._freed.set()
        self._freed = anyio.Event()


class OpenRequests:
    """The client's requests and the server's questions that have no answer yet."""

    def __init__(self) -> None:
        self._requests: set[str] = set()
        self._questions: dict[str, RequestId] = {}
        self._changed = anyio.Event()
        self._deadline: float | None = None

    def received(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            if message.method not in _NEVER_ANSWERED:
                self._requests.add(str(message.id))
        elif isinstance(message, JSONRPCNotification):
            if message.method == "notifications/cancelled":
                self._requests.discard(str((message.params or {}).get("requestId")))
        else:
            self._questions.pop(str(message.id), None)

    def sent(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._questions[str(message.id)] = message.id
        elif isinstance(message, JSONRPCResponse | JSONRPCError):
            self._requests.discard(str(message.id))
        self._changed.set()

    async def next_closed_question(self) -> JSONRPCMessage | None:
        """At the end of input: the answer to a question that the client can no longer answer. None
        when all requests are answered, or too much time has passed."""
        if self._deadline is None:
            self._deadline = anyio.current_time() + _LONGEST_END_S
        with anyio.CancelScope(deadline=self._deadline):
            while self._requests:
                if self._questions:
                    _, asked = self._questions.popitem()
                    return JSONRPCResponse(jsonrpc="2.0", id=asked, result={"action": "cancel"})
                self._changed = anyio.Event()
                await self._changed.wait()
        return None


class RequestStream:
    """A stream of incoming messages. It ends when the input has ended and every request is
    answered."""

    def __init__(self, inner: Any, requests: OpenRequests) -> None:
        self._inner = inner
        self._requests = requests

    def __aiter__(self) -> RequestStream:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._inner.__anext__()
        except StopAsyncIteration:
            closed = await self._requests.next_closed_question()
            if closed is None:
                raise
            return SessionMessage(closed)
        if isinstance(item, SessionMessage):  # not an error about an invalid line
            self._requests.received(item.message)
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()


class CountedStream:
    """A stream whose waiting messages are counted by a queue."""

    def __init__(
        self, inner: Any, queue: AnswerQueue, requests: OpenRequests | None = None
    ) -> None:
        self._inner = inner
        self._queue = queue
        self._requests = requests

    async def send(self, item: Any) -> None:
        self._queue.entered()
        try:
            await self._inner.send(item)
        finally:
            self._queue.left()
            if self._requests is not None:
                self._requests.sent(item.message)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> CountedStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class IncomingLines:
    """The lines of a stream, up to a maximum length. The last one may lack its line end."""

    def __init__(self, fd: int, queue: AnswerQueue) -> None:
        """While the queue has no room, nothing is read."""
        self._fd = fd
        self._queue = queue
        # A file or /dev/null is always readable, and cannot be waited for.
        mode = os.fstat(fd).st_mode
        self._waits = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
        self._pending = bytearray()
        self._too_long = False

    def __aiter__(self) -> IncomingLines:
        return self

    async def __anext__(self) -> str:
        await self._queue.room()
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            if searched > LONGEST_LINE:
                self._pending.clear()
                self._too_long, searched = True, 0
            if self._waits:
                await anyio.wait_readable(self._fd)
            piece = os.read(self._fd, _PIECE_BYTES)
            if not piece and not (self._pending or self._too_long):
                raise StopAsyncIteration
            self._pending += piece or b"\n"
        line = bytes(self._pending[: end + 1])
        del self._pending[: end + 1]
        if self._too_long or len(line) > LONGEST_LINE:
            self._too_long, line = False, _TOO_LONG
        return line.decode("utf-8", "replace")


def serve_stdio(server: MCPServer[Any], queue: AnswerQueue) -> None:
    """Serve until the client closes its end, and its requests are answered."""
    anyio.run(_serve, server, queue)


async def _serve(server: MCPServer[Any], queue: AnswerQueue) -> None:
    asyncio.get_running_loop().set_exception_handler(_ignore_signals)
    incoming, outgoing = _claim_streams()
    lines: Any = IncomingLines(incoming, queue)
    answers = os.fdopen(outgoing, "w", encoding="utf-8", closefd=False)
    low_level = server._lowlevel_server  # its own method takes no streams
    requests = OpenRequests()
    async with stdio_server(lines, anyio.wrap_file(answers)) as (read, write):
        incoming_messages: Any = RequestStream(read, requests)
        counted: Any = CountedStream(write, queue, requests)
        options = low_level.create_initialization_options()
        await low_level.run(incoming_messages, counted, options)


def _ignore_signals(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A signal unwinds the running task and those that wait for it. The server's caller reports it
    once."""
    rest = error = context.get("exception")
    if isinstance(error, BaseExceptionGroup):
        rest = error.split(KeyboardInterrupt)[1]
    elif isinstance(error, KeyboardInterrupt):
        rest = None
    if error is None or rest is not None:
        loop.default_exception_handler(context)


def _claim_streams() -> tuple[int, int]:
    """Private copies of the two streams; the public ones lead to /dev/null and standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return incoming, outgoing
