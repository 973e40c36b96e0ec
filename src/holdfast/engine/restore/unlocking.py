"""Opening up what its owner made unreadable, so that a restore can save it and then replace it.

Only paths that the target needs and that belong to this user; each original mode is noted, goes
into the safety checkpoint, and is put back when the restore does not happen.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Collection, Iterable

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.entries import MODE_MASK
from holdfast.domain.paths import basename, is_within, join, parent
from holdfast.domain.restore_plans import RestorePlan
from holdfast.engine.restore.handles import DirectoryHandles
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.vault import Vault

_OPEN_DIRECTORY = 0o700
_OPEN_FILE = 0o400


def locked_paths(scan: Scan, plan: RestorePlan) -> list[bytes]:
    """Unreadable paths that stand in the way of the plan."""
    unreadable = [s.path for s in scan.skipped if s.reason is SkipReason.UNREADABLE]
    return [p for p in unreadable if any(is_within(b.path, p) for b in plan.blocked)]


class Unlocked:
    """Modes changed so far, with the way back."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.modes: dict[bytes, int] = {}

    def unlock(self, paths: Iterable[bytes]) -> bool:
        """Whether anything could be opened up."""
        known = len(self.modes)
        with (
            self._vault.open_root() as root_fd,
            DirectoryHandles(self._vault.fs, root_fd) as handles,
        ):
            for path in paths:
                self._unlock(handles, path)
        return len(self.modes) > known

    def put_back(self, *, but: Collection[bytes] = ()) -> None:
        """Old modes again, except where a restore has set others. Deepest first: a directory is
        closed after what it holds."""
        if not self.modes:
            return
        with (
            self._vault.open_root() as root_fd,
            DirectoryHandles(self._vault.fs, root_fd) as handles,
        ):
            for path in sorted(self.modes.keys() - but, key=lambda p: -p.count(b"/")):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    dir_fd = handles.open(parent(path))
                    self._vault.fs.set_mode(basename(path), self.modes[path], dir_fd=dir_fd)
        self.modes.clear()

    def _unlock(self, handles: DirectoryHandles, path: bytes) -> None:
        fs = self._vault.fs
        try:
            dir_fd, name = handles.open(parent(path)), basename(path)
            status = fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
            is_directory = stat.S_ISDIR(status.st_mode)
            if not is_directory and not stat.S_ISREG(status.st_mode):
                return
            mode = status.st_mode & MODE_MASK
            opened = mode | (_OPEN_DIRECTORY if is_directory else _OPEN_FILE)
            if opened != mode:
                fs.set_mode(name, opened, dir_fd=dir_fd)
                self.modes[path] = mode
            if is_directory:
                for below in fs.list_names(handles.open(path)):
                    self._unlock(handles, join(path, below))
        except PermissionError:
            return  # not ours: it stays in the way, and the restore says so
