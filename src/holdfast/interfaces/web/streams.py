"""Server-sent events: changes to a workspace, from any program, for any number of readers.

    one thread per workspace: follows the events → encodes each once → a ring → readers wake
    each reader:              catches up from the store, then reads the ring at its own pace

Guarantees: with `Last-Event-ID` a reader gets every later event once, in order, even after a
restart of the server. Memory is bounded: a reader that falls behind the ring is notified and
catches up from the store. A reader that stops reading for too long is disconnected, and may
reconnect. While the store cannot be read, streams report that once and stay open. An event with
several messages has the ids `N.1`, `N.2`, …, and `N` for the last.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from holdfast.api.stream_events import stream_events
from holdfast.api.views.streams import server_status_view
from holdfast.domain.errors import HoldfastError, UsageError
from holdfast.interfaces.web.problems import log_bug, problem_of

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.domain.events import Event
    from holdfast.interfaces.web.operations import Operation
    from holdfast.interfaces.web.workspaces import ServedWorkspaces

HEARTBEAT_S = 15.0
_HEARTBEAT = b": heartbeat\n\n"
_RING = 1_000
_RING_BYTES = 16 << 20
_AT_ONCE = 200
_AT_ONCE_BYTES = 1 << 20
_PIECE_BYTES = 64 << 10
_LOOK_S = 2.0
"""How often the thread checks whether there are readers left."""


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last message that a reader has: an event, and the number of messages of the next
    event."""

    number: int
    parts: int = 0

    def unseen(self, entry: _Entry) -> Sequence[bytes]:
        """The messages of an event that the reader lacks. The last one ends the event and is always
        sent, because there may now be fewer than before."""
        seen = self.parts if entry.number == self.number + 1 else 0
        return entry.messages[min(seen, len(entry.messages) - 1) :]

    @classmethod
    def parse(cls, text: str) -> LastEvent:
        number, dot, parts = text.partition(".")
        well_formed = number.isascii() and number.isdigit() and len(number) < 19
        if dot:
            well_formed = well_formed and parts.isascii() and parts.isdigit() and len(parts) < 9
        if not well_formed:
            raise UsageError(
                "Last-Event-ID is not an event id", hint="leave it out to begin with new events"
            )
        return cls(int(number) - 1, int(parts)) if dot else cls(int(number))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One encoded event in the ring. Server news, which the store does not have, has no number."""

    serial: int
    number: int | None
    session_id: str | None
    messages: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.messages))


def encoded(workspace: Workspace, event: Event) -> tuple[bytes, ...]:
    """The messages of an event."""
    views = stream_events(workspace, event)
    names = [f"{event.number}.{part}" for part in range(1, len(views))] + [str(event.number)]
    return tuple(_message(view, name) for view, name in zip(views, names, strict=True))


def _message(view: Any, name: str | None = None) -> bytes:
    head = "" if name is None else f"id: {name}\n"
    return f"{head}event: {view['type']}\ndata: {json.dumps(view)}\n\n".encode()


class Stream:
    """The events of one workspace."""

    def __init__(self, workspaces: ServedWorkspaces, workspace_id: str | None) -> None:
        self._workspaces, self._workspace_id = workspaces, workspace_id
        self._lock = threading.Lock()
        self._ring: deque[_Entry] = deque()
        self._ring_bytes = 0
        self._serial = 0
        self._waiting: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake_is_due = False
        self.readers = 0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, loop: asyncio.AbstractEventLoop, newest: int) -> None:
        """Follow the workspace from its newest event, unless the thread already does."""
        with self._lock:
            self._loop = loop
            if self._thread is None and not self.is_closed:
                self._thread = threading.Thread(
                    target=self._follow, args=(newest,), name="holdfast stream", daemon=True
                )
                self._thread.start()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def from_store(self, after: int) -> list[_Entry]:
        """Events after a number, up to the size of one read."""
        found: list[_Entry] = []
        left = _AT_ONCE_BYTES
        with self._workspaces.use(self._workspace_id) as workspace:
            for event in islice(workspace.events(after), _AT_ONCE):
                entry = _Entry(0, event.number, event.session_id, encoded(workspace, event))
                found.append(entry)
                left -= entry.size_bytes
                if left <= 0:
                    break
        return found

    def position(self) -> int:
        with self._lock:
            return self._serial

    def after(self, serial: int) -> list[_Entry] | None:
        """Ring entries after a position; None if some have been overwritten."""
        with self._lock:
            if serial < self._serial - len(self._ring):
                return None
            return [one for one in self._ring if one.serial > serial]

    def publish(
        self, messages: Sequence[bytes], number: int | None = None, session_id: str | None = None
    ) -> None:
        """Thread-safe."""
        with self._lock:
            self._serial += 1
            entry = _Entry(self._serial, number, session_id, tuple(messages))
            self._ring.append(entry)
            self._ring_bytes += entry.size_bytes
            while len(self._ring) > _RING or self._ring_bytes > _RING_BYTES:
                self._ring_bytes -= self._ring.popleft().size_bytes
        self._wake()

    def close(self) -> None:
        self._closed.set()
        self._wake()

    async def wait(self, serial: int, timeout_s: float) -> bool:
        """Wait until the ring has an entry after a position, or until the timeout."""
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            if self.position() > serial or self.is_closed:
                return True
            await asyncio.wait_for(woken.wait(), timeout_s)
            return True
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(woken)

    def _wake(self) -> None:
        with self._lock:
            loop, due = self._loop, self._wake_is_due
            self._wake_is_due = True
        if loop is None or due:
            return
        try:
            loop.call_soon_threadsafe(self._wake_all)
        except RuntimeError:  # the server has ended
            self._closed.set()

    def _wake_all(self) -> None:
        with self._lock:  # else `_wake` could see the old value and schedule no wake-up ever again
            self._wake_is_due = False
        for woken in tuple(self._waiting):
            woken.set()

    def _follow(self, after: int) -> None:
        is_readable = True
        while not self.is_closed:
            try:
                with self._workspaces.use(self._workspace_id) as workspace:
                    for event in workspace.events(after, follow=True, timeout_s=_LOOK_S):
                        self.publish(encoded(workspace, event), event.number, event.session_id)
                        after = event.number
                        if self._closed.is_set():
                            return
                is_readable = True
            except Exception as error:  # without this thread, readers would wait for ever
                if is_readable:
                    self.publish([_unavailable(error)])
                is_readable = False
                self._closed.wait(_LOOK_S)
            with self._lock:
                if not self.readers:
                    self._thread = None
                    return


def _unavailable(error: Exception) -> bytes:
    log_bug(error)
    problem = problem_of(error)
    about = {"code": problem["code"], "detail": problem["detail"]}
    return _message(server_status_view("unavailable", about))


def start_position(workspace: Workspace, last: LastEvent | None) -> tuple[LastEvent, int]:
    """The reader's position, and the newest event. Without `last` the reader starts with the next
    event. If `last` is from a lost log, the reader gets everything."""
    newest = workspace.newest_event()
    if last is None:
        return LastEvent(newest), newest
    return (LastEvent(0) if last.number > newest else last), newest


class Streams:
    """The streams of all workspaces with readers."""

    def __init__(self, workspaces: ServedWorkspaces, monotonic_ns: Callable[[], int]) -> None:
        self._workspaces, self._monotonic_ns = workspaces, monotonic_ns
        self._known: dict[Path, Stream] = {}
        self._reported_ns: dict[str, int] = {}
        self._lock = threading.Lock()
        self.heartbeat_s = HEARTBEAT_S

    def of(self, workspace_id: str | None) -> Stream:
        place = self._workspaces.place(workspace_id)
        with self._lock:
            return self._known.setdefault(place, Stream(self._workspaces, workspace_id))

    def report(self, operation: Operation) -> None:
        """Publish the progress of an operation, a few times a second at most."""
        now = self._monotonic_ns()
        ended = operation.finished.is_set()
        if ended:
            with self._lock:
                self._reported_ns.pop(operation.id, None)
        try:
            place = self._workspaces.place(operation.workspace)
        except HoldfastError:
            return
        with self._lock:
            stream = self._known.get(place)
            if stream is None or not stream.readers:
                return
            if not ended:
                if now - self._reported_ns.get(operation.id, -(1 << 60)) < 100_000_000:
                    return
                self._reported_ns[operation.id] = now
        view = operation.view()
        about = {
            "id": view["id"],
            "kind": view["kind"],
            "status": view["status"],
            "phase": view["phase"],
            "done": view["done"],
            "total": view["total"],
            "bytes": view["bytes"],
        }
        stream.publish([_message(server_status_view("progress", about))])

    def readers(self) -> int:
        """The current number of readers."""
        with self._lock:
            return sum(stream.readers for stream in self._known.values())

    def close(self) -> None:
        with self._lock:
            for stream in self._known.values():
                stream.close()

    async def read(
        self, workspace_id: str | None, last: LastEvent, newest: int, session_id: str | None
    ) -> AsyncGenerator[bytes, None]:
        """Messages for one reader, until it disconnects or the server ends."""
        stream = await run_in_threadpool(self.of, workspace_id)
        stream.readers += 1
        try:
            stream.start(asyncio.get_running_loop(), newest)
            async for piece in self._messages(stream, last, session_id):
                yield piece
        finally:
            stream.readers -= 1

    async def _messages(
        self, stream: Stream, last: LastEvent, session_id: str | None
    ) -> AsyncGenerator[bytes, None]:
        now_s = asyncio.get_running_loop().time
        yield b"retry: 1000\n\n"
        sent_s = now_s()
        number, live, is_readable = last.number, False, True
        serial = stream.position()
        while not stream.is_closed:
            entries = stream.after(serial) if live else None
            if entries is None:
                if live:
                    yield _message(server_status_view("behind", {"number": number}))
                live, serial = False, stream.position()
                try:
                    entries = await run_in_threadpool(stream.from_store, number)
                except Exception as error:  # the headers are sent, so it is too late for a status
                    yield _unavailable(error) if is_readable else _HEARTBEAT
                    is_readable = False
                    await stream.wait(serial, _LOOK_S)
                    continue
                live, is_readable = not entries, True
            elif entries:
                serial = entries[-1].serial
            piece = b""
            for entry in entries:
                if entry.number is not None and entry.number <= number:
                    continue
                if session_id is None or entry.session_id in (session_id, None):
                    for message in last.unseen(entry):
                        piece += message
                        if len(piece) > _PIECE_BYTES:
                            yield piece
                            piece, sent_s = b"", now_s()
                if entry.number is not None:
                    number = entry.number
            # Events of other sessions also wake this reader, but do not count as a heartbeat.
            left_s = self.heartbeat_s - (now_s() - sent_s)
            if not piece and live and (left_s <= 0 or not await stream.wait(serial, left_s)):
                piece = _HEARTBEAT
            if piece:
                yield piece
                sent_s = now_s()
