"""The system's change notifications for a workspace: a hint, used only when proven.

A scan watches every directory before it reads it. From then on, each change in that directory
causes an event, so a later scan reads only directories with events:

    scan under `begin`  → every directory is watched, then read      → `seen`
    `places`            → all events up to this moment, by a cookie  → scan of those → `seen`

Guarantees: `places` names every directory in which a name, a file or a mode has changed since the
last scan reported by `seen`, if the system call returned before `places` was called. If anything
may break this (lost events, limits, mounts, a replaced workspace directory, a dead watcher), it
returns a `Doubt` instead.

Not guaranteed: that a named directory did change. Writes through an open memory mapping cause no
event, and neither do changes through another name of the same file. The scan checks such files
every time, if it knows them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ChangedPlaces:
    """A proven hint. `directories` may have changed; nothing is known about `subtrees`. Pass `mark`
    to `seen` after scanning them."""

    mark: int
    directories: frozenset[bytes]
    subtrees: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the whole workspace must be scanned."""

    reason: str


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """For display. `doubt` is None while saves scan only changed places. `off` means that there is
    no watch and will be none, `unproven` that reports may be incomplete."""

    directories: int
    doubt: str | None
    off: bool = False
    unproven: bool = False
    whole_scans: int = 0
    hinted_scans: int = 0
    overflows: int = 0
    differences: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    """Activity since the last kept scan: how many names were touched (up to a limit), and the times
    of the first and last change, on the monotonic clock."""

    names: int
    first_ns: int
    last_ns: int


class WorkspaceWatch(Protocol):
    """The watch over one workspace; thread-safe."""

    def begin(self) -> int:
        """Begin a full scan, and return the mark for `seen`. The scan settles all earlier
        doubts."""

    def watch(self, path: bytes, fd: int) -> None:
        """Called before an open directory is read. Never raises: a directory that cannot be watched
        becomes a doubt."""

    def places(self, device: int, inode: int) -> ChangedPlaces | Doubt:
        """Where something changed since the last scan. `device` and `inode` are those of the
        directory about to be scanned."""

    def seen(self, mark: int, *, whole: bool) -> None:
        """A scan that began at this mark is kept, so its directories need no second scan."""

    def doubt(self, reason: str) -> None:
        """The next scan must be a full one."""

    def differed(self, detail: str) -> None:
        """A full scan found a change that the hint did not name."""

    def activity(self) -> Activity: ...

    def status(self) -> WatchStatus: ...

    def close(self) -> None: ...


class Watcher(Protocol):
    """All watches of a process."""

    def open(
        self, workspace: bytes, *, listener: Callable[[], None] | None = ...
    ) -> WorkspaceWatch:
        """`listener` is called on activity, from a thread of the watcher."""

    def close(self) -> None: ...


class NoWatch:
    """Always in doubt, so every scan is a full one."""

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._scans = 0

    def begin(self) -> int:
        return 0

    def watch(self, path: bytes, fd: int) -> None:
        return None

    def places(self, device: int, inode: int) -> Doubt:
        return Doubt(self._reason)

    def seen(self, mark: int, *, whole: bool) -> None:
        self._scans += 1

    def doubt(self, reason: str) -> None:
        return None

    def differed(self, detail: str) -> None:
        return None

    def activity(self) -> Activity:
        return Activity(0, 0, 0)

    def status(self) -> WatchStatus:
        return WatchStatus(0, self._reason, off=True, whole_scans=self._scans)

    def close(self) -> None:
        return None


class NoWatcher:
    """See `holdfast.ports.watcher.Watcher`."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def open(self, workspace: bytes, *, listener: Callable[[], None] | None = None) -> NoWatch:
        return NoWatch(self._reason)

    def close(self) -> None:
        return None
