"""The daemon: answers requests, makes due checkpoints, and exits when it is idle.

    main thread   → accepts connections; one thread per connection reads and answers
    timer thread  → sleeps until a trigger of some workspace may be due, or an event wakes it
    watcher       → its own thread, asleep while nothing changes

Limits: simultaneous connections, message size, and time for a message to arrive. A failed request
is logged, and the daemon keeps running. If it is killed nothing is lost, because it has no state of
its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import __version__
from holdfast.api.automation import clean_up, release_memory
from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.daemon import handlers, hook_client
from holdfast.interfaces.daemon.address import surroundings
from holdfast.interfaces.daemon.handlers import HANDLERS, Handler
from holdfast.interfaces.daemon.hook_events import WorkForHook
from holdfast.interfaces.daemon.instance import CodeOnDisk, Listener, is_newer, log
from holdfast.interfaces.daemon.workspaces import Workspaces
from holdfast.interfaces.hooks.runtime_files import event_handler
from holdfast.interfaces.signal_wakeup import drain, wakeup_handle

if TYPE_CHECKING:
    from holdfast.api.automation import Watcher

MOST_CONNECTIONS = 64
_TOO_MANY = "too many connections at once"
_CONNECTION_IDLE_S = 30.0
_ANSWER_TAKEN_S = 10.0
_FINISH_S = 30.0
_TAKE_AGAIN_S = 0.2
_CHECK_SOCKET_S = 300.0
_QUIET_S = 5.0
"""After this time without a request, unused memory is returned to the system."""


class Daemon:
    """One per user and environment. `idle_s` is the idle time before it exits; 0 for never."""

    def __init__(
        self,
        listener: Listener,
        watcher: Watcher,
        environment: Mapping[str, str],
        *,
        idle_s: float,
        handlers: Mapping[str, Handler] | None = None,
        version: str = __version__,
    ) -> None:
        self.idle_s = idle_s
        self._memory_freed_at = 0
        self.connections = 0
        self.requests = 0
        self.wakeups = 0
        self.automation = event_handler(environment)
        self.workspaces = Workspaces(
            watcher, environment, self.automation.problems, run_in_background=self.run_in_background
        )
        self._listener = listener
        self._environment = environment
        self._surroundings = surroundings(environment)
        self._handlers = dict(HANDLERS if handlers is None else handlers)
        self._version = version
        self._started = self._last_used = time.monotonic()
        self._ended = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        self._lock = threading.Lock()
        self._slot_freed = threading.Condition(self._lock)
        self._waiting: set[socket.socket] = set()
        self._code = CodeOnDisk()

    def uptime_s(self) -> float:
        return round(time.monotonic() - self._started, 3)

    def end(self) -> None:
        """Finish the current work, then exit."""
        self._ended.set()
        self.workspaces.wake_timer()
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b".")

    def run(self) -> None:
        """Run until `end`, or until idle for long enough."""
        timer = threading.Thread(
            target=self.workspaces.watch_triggers,
            args=(self._ended,),
            name="holdfast timer",
            daemon=True,
        )
        timer.start()
        poll = select.poll()
        poll.register(self._listener.socket, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        try:
            with wakeup_handle() as wakeup:
                if wakeup is not None:
                    poll.register(wakeup, select.POLLIN)
                while not self._ended.is_set():
                    poll.poll(self._next_wakeup_s() * 1000)
                    if wakeup is not None:
                        drain(wakeup)
                    self.wakeups += 1
                    if not self._ended.is_set():
                        self._maintain()
        finally:
            self._shut_down(timer)

    def _maintain(self) -> None:
        self._accept()
        self._free_memory()
        self.end_gone_sessions()
        if self._is_idle() or not self._listener.is_reachable() or self._code.was_edited():
            self._ended.set()

    def _shut_down(self, timer: threading.Thread) -> None:
        self.end()
        self._listener.close()
        with self._slot_freed:
            for connection in self._waiting:  # idle ones, without a request
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
            self._slot_freed.wait_for(lambda: self.connections == 0, timeout=_FINISH_S)
        timer.join(_FINISH_S)
        self.workspaces.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _next_wakeup_s(self) -> float:
        used = self.connections or self._memory_freed_at != self.requests
        latest = _QUIET_S if used else _CHECK_SOCKET_S
        if not self.idle_s:
            return latest
        return min(max(self._used_at() + self.idle_s - time.monotonic(), 0.0), latest)

    def _free_memory(self) -> None:
        """Free the memory used by scans, because a daemon is idle most of the time."""
        quiet = not self.connections and time.monotonic() - self._last_used >= _QUIET_S
        done = self.requests
        if not quiet or self._memory_freed_at == done:
            return
        for workspace in self.workspaces.all():
            with self.workspaces.if_free(workspace) as free:
                if not free:
                    return  # the timer is busy; try again next time
                try:
                    workspace.rest()
                    if workspace.is_cleanup_due:
                        self.run_in_background(partial(self._clean_up, workspace.workspace))
                except Exception:  # the next request reports a damaged or missing store
                    log(traceback.format_exc())
        self._memory_freed_at = done
        release_memory()

    def _clean_up(self, workspace: Path) -> None:
        """Open the store separately, so that requests are served meanwhile."""
        try:
            clean_up(workspace, self._environment)
        except HoldfastError as error:
            log(f"{workspace}: not cleaned up: {error}")

    def end_gone_sessions(self) -> None:
        """End sessions whose agent exited without an event, such as a killed one."""
        for workspace in self.workspaces.all():
            gone = self.automation.agents.ended_sessions(workspace.workspace)
            with self.workspaces.if_free(workspace) as free:
                if not free or not gone:
                    continue
                try:
                    workspace.end_sessions(gone)
                    self.automation.agents.forget(workspace.workspace, gone)
                except HoldfastError as error:  # try again next time
                    log(f"{workspace.workspace}: a session was not ended: {error}")

    def _is_idle(self) -> bool:
        if not self.idle_s or self.connections:
            return False
        return time.monotonic() - self._used_at() >= self.idle_s

    def _used_at(self) -> float:
        """The last time a request was answered, or a file changed in a workspace with a session."""
        changed = [w.watch.activity().last_ns / 1e9 for w in self.workspaces.all() if w.session]
        return max(self._last_used, *changed, 0.0)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                log(f"a connection was not accepted: {error}")
                self._ended.wait(_TAKE_AGAIN_S)  # too many open files: wait before the next try
                return
            if hook_client.peer_user(connection) != os.geteuid():
                connection.close()
                continue
            if self._take_slot():
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            else:
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(1.0)
                    connection.sendall(handlers.pack_answer({"refused": _TOO_MANY}))

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                while not self._ended.is_set():
                    message = self._next(connection)
                    connection.settimeout(_ANSWER_TAKEN_S)
                    if message["request"] == "hook":
                        self._serve_hook(connection, message)
                    else:
                        connection.sendall(handlers.pack_answer(self._answer(message)))
        except OSError as error:
            if not isinstance(error, (TimeoutError, BrokenPipeError, ConnectionResetError)):
                log(f"a connection ended: {error}")
        except BaseException:
            log(traceback.format_exc())
        finally:
            self._free_slot()

    def _serve_hook(self, connection: socket.socket, message: dict[str, Any]) -> None:
        """Acknowledge the request immediately, then send the answer."""
        connection.sendall(hook_client.pack(hook_client.ACCEPTED, b""))
        message["arguments"]["process"] = _peer_process(connection)
        answer = self._answer(message)
        result = answer.get("answer")
        settle = result["settle"] if isinstance(result, dict) else None
        delivered = False
        try:
            connection.sendall(handlers.pack_answer(answer))
            if settle is not None:
                delivered = handlers.receive_confirmation(connection)
        finally:
            if settle is not None:
                settle(delivered)

    def run_in_background(self, work: Callable[[], None]) -> None:
        """Run work in the background; shutdown waits for it as for a request."""
        if not self._take_slot():
            work()
            return

        def run() -> None:
            try:
                work()
            except BaseException:
                log(traceback.format_exc())
            finally:
                self._free_slot()

        threading.Thread(target=run, daemon=True).start()

    def _take_slot(self) -> bool:
        with self._lock:
            has_room = self.connections < MOST_CONNECTIONS
            self.connections += has_room
        return has_room

    def _free_slot(self) -> None:
        with self._slot_freed:
            self.connections -= 1
            self._last_used = time.monotonic()
            self._slot_freed.notify_all()

    def _next(self, connection: socket.socket) -> dict[str, Any]:
        with self._lock:
            self._waiting.add(connection)
        try:
            return handlers.read_request(hook_client.receive(connection, _CONNECTION_IDLE_S))
        except ValueError as error:
            raise ConnectionError(f"not a request: {error}") from None
        finally:
            with self._lock:
                self._waiting.discard(connection)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._code.was_reinstalled():
            return self._retired("its program was replaced after it started")
        if (
            message.get("protocol") != hook_client.PROTOCOL
            or message.get("version") != self._version
        ):
            return self._other_version(message)
        if message.get("surroundings") != self._surroundings:
            return {"refused": "it serves another HOLDFAST_HOME or other keys"}
        handler = self._handlers.get(str(message.get("request")))
        arguments = message.get("arguments")
        if handler is None or not isinstance(arguments, dict):
            return {"refused": f"unknown request: {message.get('request')!r}"}
        self.requests += 1
        try:
            return {"answer": handler(self, arguments)}
        except (WorkForHook, HoldfastError) as error:
            return {"refused": str(error)}
        except Exception as error:
            log(traceback.format_exc())
            return {"refused": f"it failed: {error}"}

    def _other_version(self, message: dict[str, Any]) -> dict[str, Any]:
        """Exit in favour of a newer client's daemon. An older client does the work itself, so that
        two versions do not keep replacing each other."""
        theirs = str(message.get("version"))
        reason = f"its version is {self._version}, but the client's is {theirs}"
        return self._retired(reason) if is_newer(theirs, self._version) else {"refused": reason}

    def _retired(self, reason: str) -> dict[str, Any]:
        self._listener.close()  # before the answer: the client starts the next one at once
        self.end()
        return {"refused": reason, "retired": True}


def _peer_process(connection: socket.socket) -> int:
    """The process id at the other end; 0 if the system does not report it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], sys.byteorder)
