"""Watching with inotify: one instance, one queue and one thread, however many workspaces.

    thread    → reads the queue when it is not empty, at most every few hundredths of a second, and
                records which directories have events
    `places`  → touches the cookie, a file that is watched too → reads the queue up to its event

All watches share the queue, which is filled before a system call returns, so the cookie's event
follows those of everything done before it. An overflow is an entry of the same queue, so it cannot
be missed.

Guarantee: only a scan that began after a doubt settles it. Not guaranteed: see
`holdfast.ports.watcher`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import tempfile
import threading
from collections.abc import Callable

from holdfast.adapters.local import linux_calls as calls
from holdfast.adapters.local.inotify_watch import InotifyWatch, Node
from holdfast.adapters.local.linux_calls import Event, Inotify
from holdfast.adapters.local.mounts import MountTable
from holdfast.ports.system import Clock

_PAUSE_S = 0.05
_COOKIE_WAIT_MS = 5_000
_DRAIN_EVERY = 1_000
OVERFLOWED = "the system's event queue overflowed"
_FILES_AT_ONCE = (
    "the system's limit of inotify instances is reached (fs.inotify.max_user_instances)"
)


class WatcherFailed(Exception):
    """This watcher is no longer reliable."""


class InotifyWatcher:
    """See `holdfast.ports.watcher.Watcher`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.lock = threading.RLock()
        self.wakeups = 0
        self.dead: str | None = None
        self._watches: list[InotifyWatch] = []
        # One inode can be several directories: in nested workspaces, in bind mounts, or if a
        # directory has moved and that is not yet known. Nearly always it is one.
        self._nodes: dict[int, Node | tuple[Node, ...]] = {}
        self._owners: dict[object, InotifyWatch] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        with contextlib.ExitStack() as opened:
            try:
                self.calls = Inotify()
            except OSError as error:
                if error.errno == errno.EMFILE:
                    raise OSError(error.errno, _FILES_AT_ONCE) from None
                raise
            opened.callback(self.calls.close)
            self.mounts = MountTable()
            opened.callback(self.mounts.close)
            self._cookie = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the watcher
            opened.callback(self._cookie.close)
            self._cookie_watch = self.calls.add(self._cookie.fileno(), calls.ATTRIB)
            self._end_read, self._end_write = os.pipe2(os.O_CLOEXEC)
            opened.pop_all()

    def open(self, workspace: bytes, *, listener: Callable[[], None] | None = None) -> InotifyWatch:
        watch = InotifyWatch(self, workspace, listener)
        with self.lock:
            self._watches.append(watch)
            self._owners[watch.directories] = watch
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="holdfast watcher", daemon=True
                )
                self._thread.start()
        return watch

    def add(self, node: Node, fd: int) -> None:
        """Watch the open directory for `node`; `OSError` if the system refuses."""
        number = self.calls.add(fd, calls.DIRECTORY_EVENTS)
        if node.watch == number:
            return
        self.drop(node)
        others = self._watched_by(number)
        self._nodes[number] = (*others, node) if others else node
        node.watch = number
        node.owner.count += 1

    def drop(self, node: Node) -> None:
        """End a watch, unless another directory needs it too."""
        number, node.watch = node.watch, None
        if number is None:
            return
        node.owner.count -= 1
        others = tuple(other for other in self._watched_by(number) if other is not node)
        if others:
            self._nodes[number] = others
        elif self._nodes.pop(number, None) is not None:
            self.calls.remove(number)

    def _watched_by(self, number: int) -> tuple[Node, ...]:
        """The directories that a watch belongs to."""
        found = self._nodes.get(number, ())
        return found if isinstance(found, tuple) else (found,)

    def drop_all(self, watch: InotifyWatch) -> None:
        for done, node in enumerate(watch.directories.root.below(), 1):
            self.drop(node)
            if done % _DRAIN_EVERY == 0:
                self.drain()  # ending a watch is an event too

    def release(self, watch: InotifyWatch) -> None:
        with self.lock:
            if watch in self._watches:
                self._watches.remove(watch)
                self._owners.pop(watch.directories, None)
                if self.dead is None:
                    self.drop_all(watch)

    def synchronise(self) -> None:
        """Process everything that happened before this call; `WatcherFailed` if that is
        uncertain."""
        with self.lock:
            self._require_alive()
            try:
                self._touch_cookie()
                self._read_to_cookie()
            except OSError as error:
                raise self.fail(f"the watcher failed: {error.strerror}") from error

    def _touch_cookie(self) -> None:
        os.fchmod(self._cookie.fileno(), 0o600)  # needs no disk space

    def _read_to_cookie(self) -> None:
        """A full queue has lost the cookie's event, so the cookie is touched again once it is
        read."""
        full = False
        while True:
            events = self.calls.read()
            if self._take(events):
                return
            full = full or any(event.mask & calls.OVERFLOW for event in events)
            if not events and full:
                full = False
                self._touch_cookie()
            elif not events:
                poll = select.poll()
                poll.register(self.calls.fd, select.POLLIN)
                if not poll.poll(_COOKIE_WAIT_MS):
                    raise self.fail("the watcher does not respond")

    def drain(self) -> bool:
        """Process the queue; returns whether there was anything."""
        something = False
        while events := self.calls.read():
            self._take(events)
            something = True
        return something

    def fail(self, reason: str) -> WatcherFailed:
        self.dead = reason
        for watch in self._watches:
            watch.doubt(reason)
        return WatcherFailed(reason)

    def _require_alive(self) -> None:
        if self.dead is not None:
            raise WatcherFailed(self.dead)

    def _take(self, events: list[Event]) -> bool:
        """Process events; returns whether the cookie's was among them."""
        proven = False
        for number, mask, name in events:
            if number == self._cookie_watch:
                proven = True
            elif mask & calls.OVERFLOW:
                for watch in self._watches:
                    watch.overflowed(OVERFLOWED)
            else:
                for node in self._watched_by(number):
                    if (owner := self._owners.get(node.owner)) is not None:
                        owner.take(node, mask, name)
                if mask & calls.IGNORED:
                    for node in self._watched_by(number):
                        node.watch = None
                        node.owner.count -= 1
                    self._nodes.pop(number, None)
        return proven

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self.calls.fd, select.POLLIN)
        poll.register(self._end_read, select.POLLIN)
        poll.register(self.mounts.alarm, select.POLLPRI)
        while not self._ended.is_set():
            ready = [fd for fd, _ in poll.poll()]
            self.wakeups += 1
            if self._ended.is_set():
                return
            with self.lock:
                if self.dead is not None:
                    return
                try:
                    self.drain()
                    if self.mounts.alarm in ready:
                        for watch in self._watches:
                            watch.mounts_changed()
                except Exception as error:  # nothing is known from now on
                    self.fail(f"the watcher failed: {error}")
                awake = [watch for watch in self._watches if watch.wants_notice()]
            for watch in awake:
                watch.notify()
            # A burst of events is read at once.
            self._ended.wait(_PAUSE_S)

    def close(self) -> None:
        """End every watch and the thread."""
        self._ended.set()
        with contextlib.suppress(OSError):
            os.write(self._end_write, b".")
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self.lock:
            self.fail("the watcher was closed")
            self._watches.clear()
            self._owners.clear()
            self._nodes.clear()
            self.calls.close()
            self.mounts.close()
            self._cookie.close()
            os.close(self._end_read)
            os.close(self._end_write)
