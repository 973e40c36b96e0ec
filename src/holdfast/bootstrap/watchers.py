"""The watcher of this system, or one that says why there is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from holdfast.adapters.local.system import SystemClock
from holdfast.ports.watcher import NoWatcher

if TYPE_CHECKING:
    from holdfast.ports.watcher import Watcher


def open_watcher() -> Watcher:
    if sys.platform != "linux":
        return _watcher_elsewhere()
    from holdfast.adapters.local.watching.inotify import InotifyWatcher

    try:
        return InotifyWatcher(SystemClock())
    except OSError as error:
        return NoWatcher(f"watching failed: {error.strerror}")


def _watcher_elsewhere() -> Watcher:
    from holdfast.adapters.local.watching.watchfiles_watch import WatchfilesWatcher

    try:
        return WatchfilesWatcher(SystemClock())
    except ImportError:
        return NoWatcher("watching needs a package here: pip install 'holdfast[watch]'")
