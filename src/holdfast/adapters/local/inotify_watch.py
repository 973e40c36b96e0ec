"""The watch over one workspace: which directories have events, and what is in doubt.

The watched directories are a tree of nodes, so that moving a directory removes everything below it
at once. Times are increasing numbers: a change is forgotten after a scan that began after it has
been kept. There can be many thousands of directories, for as long as the workspace is watched. Most
have at most one directory below them, which needs no table.

Not guaranteed: anything about directories that were never entered; events do not reach them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.adapters.local import linux_calls as calls
from holdfast.adapters.local.mounts import LOCAL_TYPES, Mount
from holdfast.domain.paths import join
from holdfast.ports.watcher import Activity, ChangedPlaces, Doubt, WatchStatus

if TYPE_CHECKING:
    from holdfast.adapters.local.inotify import InotifyWatcher

_WHOLE_SCAN_EVERY_NS = 600 * 1_000_000_000
"""Changes without an event (see the port) are found after this time at the latest."""

_FIRST = "there was no full scan since the watch started"
_MOUNTED = "a file system was mounted or unmounted in the workspace"
_NAMES_CHANGED = calls.CREATE | calls.MOVED_TO | calls.DELETE | calls.MOVED_FROM


class InotifyWatch:
    """See `holdfast.ports.watcher.WorkspaceWatch`. Members that take no lock are called by the
    watcher, which holds it."""

    def __init__(
        self, watcher: InotifyWatcher, workspace: bytes, listener: Callable[[], None] | None
    ) -> None:
        self.directories = WatchedDirectories()
        self._watcher = watcher
        self._workspace = workspace
        self._listener = listener
        self._doubt: str | None = _FIRST
        self._doubted_at = 0
        self._off: str | None = None
        self._root: tuple[int, int] | None = None
        self._mounts: tuple[Mount, ...] = ()
        self._new_root: tuple[int, int] | None = None
        self._new_mounts: tuple[Mount, ...] = ()
        self._whole_ns = 0
        self._begun_ns = 0
        self._first_ns = self._last_ns = watcher.clock.monotonic_ns()
        self._has_news = False
        self._scan = 0
        self._whole = self._hinted = self._overflows = self._differences = 0

    def begin(self) -> int:
        with self._watcher.lock:
            if self._off is None and self._watcher.dead is None:
                self._watcher.drain()
                self._begun_ns = self._watcher.clock.monotonic_ns()
                self._scan += 1
                self._new_root = None
                self._new_mounts = self._watcher.mounts.around(self._workspace)
                foreign = [m for m in self._new_mounts if m.kind not in LOCAL_TYPES]
                if foreign or not self._new_mounts:
                    self._turn_off(_not_local(foreign))
            return self.directories.now

    def watch(self, path: bytes, fd: int) -> None:
        with self._watcher.lock:
            if self._off is not None or self._watcher.dead is not None:
                return
            try:
                node = self.directories.node(path)
                node.scan = self._scan
                self._watcher.add(node, fd)
                if not path:
                    status = os.fstat(fd)
                    self._new_root = (status.st_dev, status.st_ino)
            except OSError as error:
                self._turn_off(_refused(error, self.directories.count))

    def places(self, device: int, inode: int) -> ChangedPlaces | Doubt:
        from holdfast.adapters.local.inotify import WatcherFailed

        with self._watcher.lock:
            if self._off is not None:
                return Doubt(self._off)
            try:
                self._watcher.synchronise()
            except WatcherFailed as failure:
                return Doubt(str(failure))
            if self._doubt is None:
                self._look_for_doubt(device, inode)
            if self._doubt is not None:
                return Doubt(self._doubt)
            known = self.directories
            return ChangedPlaces(known.now, known.changed(), known.unknown())

    def _look_for_doubt(self, device: int, inode: int) -> None:
        now_ns = self._watcher.clock.monotonic_ns()
        if self._root != (device, inode):
            self.doubt("the workspace directory was replaced")
        elif self._watcher.mounts.around(self._workspace) != self._mounts:
            self.doubt(_MOUNTED)
        elif self.directories.has_lost_track:
            self.doubt("too many directories were created and removed to follow")
        elif now_ns - self._whole_ns >= _WHOLE_SCAN_EVERY_NS:
            self.doubt("the last full scan is ten minutes old")

    def seen(self, mark: int, *, whole: bool) -> None:
        with self._watcher.lock:
            self.directories.forget(mark)
            if not whole:
                self._hinted += 1
                return
            self._whole += 1
            # Only now, because a discarded scan must not make changes to these look old.
            self._root, self._mounts = self._new_root, self._new_mounts
            self._whole_ns = self._begun_ns
            for gone in self.directories.sweep(self._scan):
                self._watcher.drop(gone)
            if self._doubted_at <= mark and self._root is not None:
                self._doubt = None

    def doubt(self, reason: str) -> None:
        with self._watcher.lock:
            self.directories.now += 1
            self._doubted_at = self.directories.now
            self._doubt = reason

    def overflowed(self, reason: str) -> None:
        self._overflows += 1
        self._note_activity()
        self.doubt(reason)

    def differed(self, detail: str) -> None:
        with self._watcher.lock:
            self._differences += 1
            self.doubt(f"a full scan found a change that the watcher missed: {detail}")

    def take(self, node: Node, mask: int, name: bytes) -> None:
        """One event in the directory of `node`."""
        if mask & calls.IGNORED:
            return  # the watch ended, and its parents were already reported
        self._note_activity()
        if mask & calls.UNMOUNT:
            self._lose_all("a file system was unmounted in the workspace")
        elif mask & (calls.DELETE_SELF | calls.MOVE_SELF):
            if node is self.directories.root:
                self._lose_all("the workspace was moved or deleted")
        elif mask & calls.IS_DIRECTORY and name and mask & _NAMES_CHANGED:
            gone = self.directories.replace(node, name)
            if gone is not None:
                for lost in gone.below():
                    self._watcher.drop(lost)
        else:
            self.directories.change(node, name)
            if mask & calls.IS_DIRECTORY and (child := node.child(name)) is not None:
                self.directories.change(child)

    def mounts_changed(self) -> None:
        """Somewhere on the system. A directory gets no event when something is mounted over it."""
        if self._root is not None and self._watcher.mounts.around(self._workspace) != self._mounts:
            self._note_activity()
            self._lose_all(_MOUNTED)

    def _lose_all(self, reason: str) -> None:
        """More than a doubt: something did happen, and the details are lost."""
        self.directories.lose_all()
        self.doubt(reason)

    def _note_activity(self) -> None:
        self._last_ns = self._watcher.clock.monotonic_ns()
        if self.directories.touched == 0:
            self._first_ns = self._last_ns
        self._has_news = True

    def wants_notice(self) -> bool:
        notice, self._has_news = self._has_news and self._listener is not None, False
        return notice

    def notify(self) -> None:
        if self._listener is not None:
            self._listener()

    def activity(self) -> Activity:
        with self._watcher.lock:
            return Activity(self.directories.touched, self._first_ns, self._last_ns)

    def status(self) -> WatchStatus:
        with self._watcher.lock:
            return WatchStatus(
                directories=self.directories.count,
                doubt=self._off or self._watcher.dead or self._doubt,
                off=self._off is not None or self._watcher.dead is not None,
                whole_scans=self._whole,
                hinted_scans=self._hinted,
                overflows=self._overflows,
                differences=self._differences,
            )

    def _turn_off(self, reason: str) -> None:
        self._off = reason
        self._watcher.drop_all(self)

    def close(self) -> None:
        self._watcher.release(self)


def _not_local(foreign: list[Mount]) -> str:
    if not foreign:
        return "its file system is unknown"
    kinds = ", ".join(sorted({mount.kind.decode("ascii", "replace") for mount in foreign}))
    return f"its file system ({kinds}) does not report changes from other machines"


def _refused(error: OSError, count: int) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"the system's limit of watched directories is reached at {count:,} "
            "(fs.inotify.max_user_watches)"
        )
    return f"cannot watch a directory: {error.strerror}"


_MOST_TOUCHED = 10_000
_MOST_UNKNOWN = 20_000
_IN_A_NEW_DIRECTORY = 1_000


class Node:
    """One directory. `watch` is the number of its watch, or None. `scan` is the scan that last saw
    it."""

    __slots__ = ("_inside", "name", "owner", "parent", "scan", "watch")

    def __init__(self, owner: WatchedDirectories, parent: Node | None, name: bytes) -> None:
        self.owner = owner
        self.parent = parent
        self.name = name
        self._inside: Node | dict[bytes, Node] | None = None
        self.watch: int | None = None
        self.scan = 0

    def child(self, name: bytes) -> Node | None:
        inside = self._inside
        if isinstance(inside, dict):
            return inside.get(name)
        return inside if inside is not None and inside.name == name else None

    def children(self) -> tuple[Node, ...]:
        inside = self._inside
        if isinstance(inside, dict):
            return tuple(inside.values())
        return () if inside is None else (inside,)

    def attach(self, child: Node) -> None:
        """Add a child whose name is not there yet."""
        inside = self._inside
        if isinstance(inside, dict):
            inside[child.name] = child
        else:
            self._inside = child if inside is None else {inside.name: inside, child.name: child}

    def detach(self, child: Node) -> None:
        """Remove an existing child."""
        if isinstance(self._inside, dict):
            del self._inside[child.name]
        else:
            self._inside = None

    @property
    def path(self) -> bytes:
        names = []
        node = self
        while node.parent is not None:
            names.append(node.name)
            node = node.parent
        return b"/".join(reversed(names))

    def below(self) -> Iterator[Node]:
        """This node and everything under it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children())


class WatchedDirectories:
    """What is known about one workspace between two scans."""

    def __init__(self) -> None:
        self.root = Node(self, None, b"")
        self.count = 0
        self.now = 0
        self._changed: dict[Node, int] = {}
        self._unknown: dict[bytes, int] = {}
        self._touched: dict[tuple[Node, bytes], int] = {}

    def node(self, path: bytes) -> Node:
        """The node of a directory, created if missing."""
        node = self.root
        for name in path.split(b"/") if path else ():
            child = node.child(name)
            if child is None:
                child = Node(self, node, name)
                node.attach(child)
            node = child
        return node

    def change(self, node: Node, name: bytes = b"") -> None:
        """Something happened in this directory, to this name."""
        self.now += 1
        self._changed[node] = self.now
        if name and len(self._touched) < _MOST_TOUCHED:
            self._touched[node, name] = self.now

    def replace(self, node: Node, name: bytes) -> Node | None:
        """A directory of that name appeared or disappeared, so nothing below it is known. Returns
        its old node, removed from the tree."""
        self.change(node, name)
        self._unknown[join(node.path, name)] = self.now
        gone = node.child(name)
        if gone is not None:
            node.detach(gone)
            for lost in gone.below():
                self._changed.pop(lost, None)
        return gone

    def lose_all(self) -> None:
        """Anything may have happened anywhere."""
        self.now += 1
        self._unknown[b""] = self.now

    def sweep(self, scan: int) -> list[Node]:
        """Remove the directories that no scan since this one has seen."""
        gone = [node for node in self.root.below() if node.parent is not None and node.scan < scan]
        for node in gone:
            self._changed.pop(node, None)
            if node.parent is not None and node.parent.child(node.name) is node:
                node.parent.detach(node)
        return gone

    def forget(self, mark: int) -> None:
        """A scan that began at `mark` has seen all changes up to then."""
        self._changed = {node: when for node, when in self._changed.items() if when > mark}
        self._unknown = {path: when for path, when in self._unknown.items() if when > mark}
        self._touched = {each: when for each, when in self._touched.items() if when > mark}

    def changed(self) -> frozenset[bytes]:
        return frozenset(node.path for node in self._changed)

    def unknown(self) -> frozenset[bytes]:
        return frozenset(self._unknown)

    @property
    def has_lost_track(self) -> bool:
        """So much is unknown that a full scan is faster, and remembering it costs memory."""
        return len(self._unknown) > _MOST_UNKNOWN

    @property
    def touched(self) -> int:
        """How many names may be affected; a new directory can hold any number."""
        return len(self._touched) + _IN_A_NEW_DIRECTORY * len(self._unknown)
