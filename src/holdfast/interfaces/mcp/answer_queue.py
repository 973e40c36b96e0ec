"""Backpressure over standard output: a client that does not read gets no more answers made.

    answers that wait to be written ── too many ──► no more requests are read, no more work begun

So a slow reader costs a bounded number of answers in memory. Its open requests are answered when it
reads on. One event loop uses it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Generic, Protocol, TypeVar

import anyio

MOST_WAITING = 256

T = TypeVar("T", contravariant=True)


class Stream(Protocol[T]):
    """A stream that the protocol library sends through."""

    async def send(self, item: T, /) -> None: ...

    async def aclose(self) -> None: ...


class AnswerQueue:
    """How many answers wait, and how many are being made."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most = most
        self._freed: anyio.Event | None = None
        self.waiting = self.at_work = 0

    async def room(self) -> None:
        """Returns when few enough answers wait for another request to be read."""
        while self.waiting >= self._most:
            await self._change()

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """Begins when there is room for the answer that the block makes."""
        while self.waiting + self.at_work >= self._most:
            await self._change()
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1
            self._changed()

    def entered(self) -> None:
        self.waiting += 1

    def left(self) -> None:
        self.waiting -= 1
        self._changed()

    async def _change(self) -> None:
        if self._freed is None:
            self._freed = anyio.Event()
        await self._freed.wait()

    def _changed(self) -> None:
        if self._freed is not None:
            self._freed.set()
            self._freed = None


class CountedStream(Generic[T]):
    """A stream whose waiting messages a queue counts."""

    def __init__(self, inner: Stream[T], queue: AnswerQueue) -> None:
        self._inner = inner
        self._queue = queue

    async def send(self, item: T) -> None:
        self._queue.entered()
        try:
            await self._inner.send(item)
        finally:
            self._queue.left()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> CountedStream[T]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
