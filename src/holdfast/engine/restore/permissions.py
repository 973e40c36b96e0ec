"""Makes the user's unreadable paths readable, so that a restore can save and then replace them.

    get the modes → record them durably → make readable → … → restore the modes → remove the record

This applies only to paths that the target needs and that belong to this user. The safety checkpoint
has each original mode. If the restore does not happen, the modes are restored; if the process was
killed, by the next command.
"""

from __future__ import annotations

import contextlib
import errno
import json
import stat
from collections.abc import Callable, Collection, Iterable, Mapping

from holdfast.domain.checkpoints import SkipReason
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
from holdfast.domain.restore.plan import RestorePlan
from holdfast.domain.trees.entries import MODE_MASK, SETID_BITS
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles, ignoring
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.vault import Vault

_OPEN_DIRECTORY = 0o700
_OPEN_FILE = 0o400
_NOT_OURS = (errno.EPERM, errno.EACCES)


def locked_paths(scan: Scan, plan: RestorePlan) -> list[bytes]:
    """Unreadable paths that block the plan."""
    unreadable = [s.path for s in scan.skipped if s.reason is SkipReason.UNREADABLE]
    return [p for p in unreadable if any(is_within(b.path, p) for b in plan.blocked)]


class Unlocked:
    """The modes changed so far, and how to restore them."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.modes: dict[bytes, int] = {}
        self._original: dict[tuple[int, int], int] = {}

    def unlock(self, paths: Iterable[bytes]) -> bool:
        """Returns whether any path could be made accessible."""
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
        """Restore the old modes, except for paths in `but`, whose modes the restore has set."""
        if not self.modes:
            return
        _set_modes(self._vault, {p: m for p, m in self.modes.items() if p not in but})
        self._vault.journal.remove_note()
        self.modes.clear()

    def _unlock(self, handles: DirectoryHandles, paths: list[bytes]) -> list[bytes]:
        """Make these accessible, after recording all of them; returns the entries below."""
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
                # It may already be accessible through another name.
                inode = status.st_dev, status.st_ino
                mode = self._original.setdefault(inode, status.st_mode & MODE_MASK)
                opened = mode | (_OPEN_DIRECTORY if is_directory else _OPEN_FILE)
                if opened != mode:
                    found[path] = mode, opened
                if is_directory:
                    directories.append(path)
        if found:
            modes = {path: mode for path, (mode, _) in found.items()}
            self._vault.journal.write_note(encode_note(self.modes | modes))
        for path, (mode, opened) in found.items():
            # Other users' paths stay blocked, and the restore reports them.
            with contextlib.suppress(PermissionError):
                dir_fd = handles.open(parent(path))
                fs.set_mode(basename(path), opened, dir_fd=dir_fd)
                self.modes[path] = mode
        below: list[bytes] = []
        for path in directories:
            with contextlib.suppress(PermissionError):
                below += [join(path, name) for name in fs.list_names(handles.open(path))]
        return below


def restore_noted_modes(vault: Vault, restored: Callable[[bytes], int | None]) -> None:
    """Restore modes that a killed restore left accessible, except for paths with the mode that was
    `restored` since. Modes that were changed meanwhile are kept."""
    data = vault.journal.read_note()
    if data is None:
        return

    def is_left_open(path: bytes, closed: int, now: int) -> bool:
        opened = closed | (_OPEN_DIRECTORY if stat.S_ISDIR(now) else _OPEN_FILE)
        given = restored(path)
        return now & MODE_MASK == opened and (given is None or (given ^ opened) & ~SETID_BITS != 0)

    _set_modes(vault, decode_note(data), is_left_open)
    vault.journal.remove_note()


def _set_modes(
    vault: Vault,
    modes: Mapping[bytes, int],
    applies: Callable[[bytes, int, int], bool] = lambda path, mode, now: True,
) -> None:
    """Deepest first, so that a directory is closed after its entries. If a restore has closed one
    meanwhile, it is recorded too, and opened temporarily. Missing paths and other users' paths are
    skipped."""
    fs, wanted = vault.fs, dict(modes)
    with vault.open_root() as root_fd, DirectoryHandles(fs, root_fd) as handles:
        for path in modes:
            with ignoring(*NO_DIRECTORY, *_NOT_OURS):
                _make_accessible(vault, handles, parent(path), wanted)
        for path in sorted(wanted, key=lambda p: -p.count(b"/")):
            with ignoring(*NO_DIRECTORY, *_NOT_OURS):
                dir_fd, name = handles.open(parent(path)), basename(path)
                now = fs.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
                if applies(path, wanted[path], now):
                    fs.set_mode(name, wanted[path], dir_fd=dir_fd)


def _make_accessible(
    vault: Vault, handles: DirectoryHandles, directory: bytes, noted: dict[bytes, int]
) -> None:
    """Make `directory` accessible; adds changed modes to `noted`, to be restored later."""
    fs = vault.fs
    try:
        fs.stat(b".", dir_fd=handles.open(directory), follow_symlinks=False)
    except PermissionError:
        if not directory:
            raise
        _make_accessible(vault, handles, parent(directory), noted)
        above, name = handles.open(parent(directory)), basename(directory)
        mode = fs.stat(name, dir_fd=above, follow_symlinks=False).st_mode & MODE_MASK
        noted[directory] = mode
        vault.journal.write_note(encode_note(noted))
        fs.set_mode(name, mode | _OPEN_DIRECTORY, dir_fd=above)


def encode_note(modes: Mapping[bytes, int]) -> bytes:
    return json.dumps({to_text(path): mode for path, mode in modes.items()}).encode()


def decode_note(data: bytes) -> dict[bytes, int]:
    """`StoreDamaged` unless a restore has written it."""
    try:
        return {
            require_safe_path(from_text(path)): int(mode) & MODE_MASK
            for path, mode in json.loads(data).items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise StoreDamaged(
            "the record of files that a restore made writable is damaged",
            hint="run: holdfast check",
        ) from None
