"""Waking the followers of a store when its catalog or story was written to.

By inotify, where there is one to be had: nothing is looked at while nothing happens. Else the sizes
and times of four files are looked at a few times a second.
"""

from __future__ import annotations

import contextlib
import os
import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.ports.event_log import ChangeListener

_LOOK_S = 0.15
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class _Stop:
    """A pipe that is written to once."""

    def __init__(self) -> None:
        self.read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def stop(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._write_fd, b"!")

    def close(self) -> None:
        os.close(self.read_fd)
        os.close(self._write_fd)


class InotifyListener:
    """See `holdfast.ports.event_log.ChangeListener`."""

    def __init__(self, layout: StoreLayout) -> None:
        from holdfast.adapters.local.watching import inotify_calls as calls

        self._names = frozenset(os.fsencode(path) for path in _names(layout))
        with contextlib.ExitStack() as opened:
            self._queue = calls.Inotify()
            opened.callback(self._queue.close)
            directory = os.open(layout.directory, _DIRECTORY)
            try:
                mask = calls.MODIFY | calls.CREATE | calls.MOVED_TO | calls.DELETE_SELF
                self._queue.add(directory, mask)
            finally:
                os.close(directory)
            self._stop = _Stop()
            opened.pop_all()

    def wait(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self._queue.fd, self._stop.read_fd], [], [], timeout_s)
        changed = False
        while events := self._queue.read():
            changed = changed or any(
                event.name in self._names or not event.name for event in events
            )
        return changed or self._stop.read_fd in ready

    def stop(self) -> None:
        self._stop.stop()

    def close(self) -> None:
        self._stop.close()
        self._queue.close()


class PollingListener:
    """See `holdfast.ports.event_log.ChangeListener`."""

    def __init__(self, layout: StoreLayout) -> None:
        self._paths = [layout.directory / name for name in _names(layout)]
        self._seen = self._look()
        self._stop = _Stop()

    def wait(self, timeout_s: float) -> bool:
        while (now := self._look()) == self._seen:
            step = min(_LOOK_S, timeout_s)
            if select.select([self._stop.read_fd], [], [], step)[0]:
                return True
            timeout_s -= step
            if timeout_s <= 0:
                return False
        self._seen = now
        return True

    def stop(self) -> None:
        self._stop.stop()

    def close(self) -> None:
        self._stop.close()

    def _look(self) -> list[tuple[int, ...] | None]:
        found: list[tuple[int, ...] | None] = []
        for path in self._paths:
            try:
                status = path.stat()
            except OSError:
                found.append(None)
            else:
                found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        return found


def open_change_listener(layout: StoreLayout) -> ChangeListener:
    try:
        return InotifyListener(layout)
    except (OSError, AttributeError):  # no inotify, or no further instance of it
        return PollingListener(layout)


def _names(layout: StoreLayout) -> list[str]:
    return [
        path.name + suffix for path in (layout.catalog, layout.story) for suffix in ("", "-wal")
    ]
