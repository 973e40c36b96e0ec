"""Opening up what its owner made unreadable, so that a restore can save it and then replace it.

    look at the modes → note them, durably → open up → … → put back → the note goes

Only paths that the target needs and that belong to this user; each original mode goes into the
safety checkpoint, and is put back when the restore does not happen, or by the next command when
its process was killed.
"""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Callable, Collection, Iterable, Mapping

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.entries import MODE_MASK
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.paths import (
    basename,
    from_text,
    is_within,
    join,
    parent,
    require_safe_path,
    to_text,
)
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
            level = list(paths)
            while level:
                level = self._unlock(handles, level)
        return len(self.modes) > known

    def put_back(self, *, but: Collection[bytes] = ()) -> None:
        """Old modes again, except where a restore has set others."""
        if not self.modes:
            return
        _set_modes(self._vault, {p: m for p, m in self.modes.items() if p not in but})
        self._vault.access.remove_note()
        self.modes.clear()

    def _unlock(self, handles: DirectoryHandles, paths: list[bytes]) -> list[bytes]:
        """Open up these, after one note of all of them; what lies in them comes next."""
        fs = self._vault.fs
        found: dict[bytes, tuple[int, int]] = {}
        directories: list[bytes] = []
        for path in paths:
            with contextlib.suppress(PermissionError):
                dir_fd, name = handles.open(parent(path)), basename(path)
                status = fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
                is_directory = stat.S_ISDIR(status.st_mode)
                if not is_directory and not stat.S_ISREG(status.st_mode):
                    continue
                mode = status.st_mode & MODE_MASK
                opened = mode | (_OPEN_DIRECTORY if is_directory else _OPEN_FILE)
                if opened != mode:
                    found[path] = mode, opened
                if is_directory:
                    directories.append(path)
        if found:
            modes = {path: mode for path, (mode, _) in found.items()}
            self._vault.access.write_note(encode_note(self.modes | modes))
        for path, (mode, opened) in found.items():
            # What is not ours stays in the way, and the restore says so.
            with contextlib.suppress(PermissionError):
                dir_fd = handles.open(parent(path))
                fs.set_mode(basename(path), opened, dir_fd=dir_fd)
                self.modes[path] = mode
        below: list[bytes] = []
        for path in directories:
            with contextlib.suppress(PermissionError):
                below += [join(path, name) for name in fs.list_names(handles.open(path))]
        return below


def put_back_noted(vault: Vault, restored: Callable[[bytes], bool]) -> None:
    """What a killed restore left opened up, but for the paths that were `restored` since. Modes
    that somebody has set meanwhile are theirs."""
    data = vault.access.read_note()
    if data is None:
        return
    left: dict[bytes, int] = {}
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path, mode in decode_note(data).items():
            with contextlib.suppress(OSError):
                dir_fd = handles.open(parent(path))
                status = vault.fs.stat(basename(path), dir_fd=dir_fd, follow_symlinks=False)
                extra = _OPEN_DIRECTORY if stat.S_ISDIR(status.st_mode) else _OPEN_FILE
                if status.st_mode & MODE_MASK == mode | extra and not restored(path):
                    left[path] = mode
    _set_modes(vault, left)
    vault.access.remove_note()


def _set_modes(vault: Vault, modes: Mapping[bytes, int]) -> None:
    """Deepest first: a directory is closed after what it holds."""
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in sorted(modes, key=lambda p: -p.count(b"/")):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                dir_fd = handles.open(parent(path))
                vault.fs.set_mode(basename(path), modes[path], dir_fd=dir_fd)


def encode_note(modes: Mapping[bytes, int]) -> bytes:
    return json.dumps({to_text(path): mode for path, mode in modes.items()}).encode()


def decode_note(data: bytes) -> dict[bytes, int]:
    """`StoreDamaged` for anything that no restore has written."""
    try:
        return {
            require_safe_path(from_text(path)): int(mode) & MODE_MASK
            for path, mode in json.loads(data).items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise StoreDamaged(
            "the note of files that a restore had opened up is damaged", hint="run: holdfast check"
        ) from None
