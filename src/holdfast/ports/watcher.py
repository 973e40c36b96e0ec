"""The system's notifications of changes in a workspace: a hint, which is used only when proven.

The scan places a watch on every directory before it looks at it. From then on a change in that
directory leads to an event, so a later scan need only look where there were events:

    scan under `begin`  → every directory is watched, then read      → `seen`
    `places`            → all events up to this moment, by a cookie  → scan of those → `seen`

Guarantees: what `places` names contains every directory in which a name, a file or a mode was
changed, by a system call that returned before `places` was called, since the scan that was last
reported by `seen`. Whatever could break this (lost events, limits, mounts, a workspace that is
another directory now, a watcher that died) makes it answer with a `Doubt` instead.
Not guaranteed: that a named directory did change. No event is made by writes through a memory
mapping before it ends, nor by changes through another name of the same file; the scan looks at
such files each time, as far as it knows them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ChangedPlaces:
    """A proven hint. In `directories` something may have changed; of `subtrees` nothing is known.
    `mark` is handed back to `seen` when they have been looked at."""

    mark: int
    directories: frozenset[bytes]
    subtrees: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the whole workspace has to be looked at."""

    reason: str


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """For people. `doubt` is None while saves look only where something changed; `off` tells that
    there is no watch and will be none, `unproven` that what it tells may not be everything."""

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
    """Activity since the last scan that was kept: how many names were touched (counted up to a
    limit), and when something first and last was, on the monotonic clock."""

    names: int
    first_ns: int
    last_ns: int


class WorkspaceWatch(Protocol):
    """The watch over one workspace; safe to use from several threads."""

    def begin(self) -> int:
        """A scan of everything begins; the mark to hand to `seen`. Doubts that are older than it
        are settled by it."""

    def watch(self, path: bytes, fd: int) -> None:
        """Called before the open directory is looked at. Never raises: what cannot be watched
        becomes a doubt."""

    def places(self, device: int, inode: int) -> ChangedPlaces | Doubt:
        """Where something changed since the last scan; `device` and `inode` are those of the
        directory that is about to be scanned."""

    def seen(self, mark: int, *, whole: bool) -> None:
        """A scan begun at this mark is kept; what it looked at needs no second look."""

    def doubt(self, reason: str) -> None:
        """The next scan has to look at everything."""

    def differed(self, detail: str) -> None:
        """A scan of everything found what the hint did not name."""

    def activity(self) -> Activity: ...

    def status(self) -> WatchStatus: ...

    def close(self) -> None: ...


class Watcher(Protocol):
    """All watches of a process."""

    def open(
        self, workspace: bytes, *, listener: Callable[[], None] | None = ...
    ) -> WorkspaceWatch:
        """`listener` is called, from a thread of the watcher, when there was activity."""

    def close(self) -> None: ...


class NoWatch:
    """Always in doubt, so that every scan looks at everything."""

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
