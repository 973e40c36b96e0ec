"""The watch over one workspace: which directories have events, and what is in doubt."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.adapters.local.watching import inotify_calls as calls
from holdfast.adapters.local.watching.mounts import LOCAL_TYPES, Mount
from holdfast.adapters.local.watching.watched_directories import Node, WatchedDirectories
from holdfast.ports.watcher import Activity, ChangedPlaces, Doubt, WatchStatus

if TYPE_CHECKING:
    from holdfast.adapters.local.watching.inotify import InotifyWatcher

_WHOLE_SCAN_EVERY_NS = 600 * 1_000_000_000
"""What makes no event (see the port) is found after this long at the latest."""

_FIRST = "nothing has been looked at since the watch began"
_MOUNTED = "a file system was mounted or unmounted in the workspace"
_NAMES_CHANGED = calls.CREATE | calls.MOVED_TO | calls.DELETE | calls.MOVED_FROM


class InotifyWatch:
    """See `holdfast.ports.watcher.WorkspaceWatch`. Members without a lock of their own are called
    by the watcher, which holds it."""

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
        self._tell = False
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
        from holdfast.adapters.local.watching.inotify import WatcherFailed

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
            self.doubt("the workspace is another directory than the one that was watched")
        elif self._watcher.mounts.around(self._workspace) != self._mounts:
            self.doubt(_MOUNTED)
        elif self.directories.has_lost_track:
            self.doubt("more directories came and went than are worth following")
        elif now_ns - self._whole_ns >= _WHOLE_SCAN_EVERY_NS:
            self.doubt("the last look at everything is ten minutes ago")

    def seen(self, mark: int, *, whole: bool) -> None:
        with self._watcher.lock:
            self.directories.forget(mark)
            if not whole:
                self._hinted += 1
                return
            self._whole += 1
            # Only now: a scan that nobody kept must not make a change of these look old.
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
            self.doubt(f"a look at everything found what the watch had not seen: {detail}")

    def take(self, node: Node, mask: int, name: bytes) -> None:
        """One event in the directory of `node`."""
        if mask & calls.IGNORED:
            return  # the watch ended: what led to it was told before
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
        """Somewhere on the system: no directory tells of what covers it."""
        if self._root is not None and self._watcher.mounts.around(self._workspace) != self._mounts:
            self._note_activity()
            self._lose_all(_MOUNTED)

    def _lose_all(self, reason: str) -> None:
        """Not a doubt alone: something did happen, and nobody will tell what."""
        self.directories.lose_all()
        self.doubt(reason)

    def _note_activity(self) -> None:
        self._last_ns = self._watcher.clock.monotonic_ns()
        if self.directories.touched == 0:
            self._first_ns = self._last_ns
        self._tell = True

    def is_to_be_told(self) -> bool:
        tell, self._tell = self._tell and self._listener is not None, False
        return tell

    def tell(self) -> None:
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
        self._watcher.let_go(self)


def _not_local(foreign: list[Mount]) -> str:
    if not foreign:
        return "it is not known which file system it is on"
    kinds = ", ".join(sorted({mount.kind.decode("ascii", "replace") for mount in foreign}))
    return f"other machines could change it unseen: it has a file system of type {kinds}"


def _refused(error: OSError, count: int) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"the system allows no more than the {count:,} directories that were watched "
            "(fs.inotify.max_user_watches)"
        )
    return f"a directory cannot be watched: {error.strerror}"
