"""Directory handles for a restore, opened component by component and never through a link (I6).

Every operation checks here for an unfinished restore, so the check is cheap.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

from holdfast.domain.paths import MARKER_DIRECTORY, STAGING_PREFIX, basename, join, parent
from holdfast.domain.trees.entries import MODE_MASK
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import DIRECTORY_FLAGS, Filesystem

OWNER_ALL = 0o700
NO_DIRECTORY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors for a directory that is gone, or that has become a file or a link."""

_MOST_OPEN = 200
_FEW_OPEN = 8
_TOO_MANY = (errno.EMFILE, errno.ENFILE)


@contextmanager
def ignoring(*numbers: int) -> Iterator[None]:
    """Ignore errors with one of these numbers."""
    try:
        yield
    except OSError as error:
        if error.errno not in numbers:
            raise


def give_to(fs: Filesystem, fd: int, owner: tuple[int, int]) -> bool:
    """Change the owner; returns whether that worked. Root in a container may not be allowed to
    change owners, or not to an unknown user. The file then stays Holdfast's user's."""
    try:
        fs.fchown(fd, *owner)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EINVAL):
            raise
        return False
    return True


class DirectoryHandles:
    """Opens directories of the workspace, and makes them writable for as long as necessary.

    The least recently used handles are closed, so a handle is valid only until many others are
    opened. Ask again for each use."""

    def __init__(self, fs: Filesystem, root_fd: int) -> None:
        self._fs = fs
        self._root_fd = root_fd
        self._open: dict[bytes, int] = {}
        self.original_modes: dict[bytes, int] = {}

    def __enter__(self) -> DirectoryHandles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.forget_all()

    def open(self, path: bytes) -> int:
        """A handle on the directory `path`; this object closes it."""
        if not path:
            return self._root_fd
        if (known := self._open.pop(path, None)) is not None:
            self._open[path] = known  # most recently used last
            return known
        above = self.open(parent(path))
        try:
            fd = self._fs.open(basename(path), DIRECTORY_FLAGS, dir_fd=above)
        except OSError as error:
            if error.errno not in _TOO_MANY or len(self._open) <= _FEW_OPEN:
                raise
            self._close_oldest(_FEW_OPEN)
            fd = self._fs.open(basename(path), DIRECTORY_FLAGS, dir_fd=above)
        self._close_oldest(_MOST_OPEN - 1)
        self._open[path] = fd
        return fd

    def _close_oldest(self, most: int) -> None:
        while len(self._open) > most:
            self._fs.close(self._open.pop(next(iter(self._open))))

    def open_for_change(self, path: bytes) -> int:
        """Like `open`, but makes a directory writable if its owner cannot write to it. Its mode is
        recorded first, because this may be interrupted."""
        try:
            fd = self.open(path)
            mode = self._fs.fstat(fd).st_mode & MODE_MASK
        except PermissionError:
            above, name = self.open_for_change(parent(path)), basename(path)
            mode = self._fs.stat(name, dir_fd=above, follow_symlinks=False).st_mode & MODE_MASK
            with self._noted(path, mode):
                self._fs.set_mode(name, mode | OWNER_ALL, dir_fd=above)
            fd = self.open(path)
        if mode & OWNER_ALL != OWNER_ALL:
            # Another user's directory may be writable through its group; the change itself will
            # tell.
            with ignoring(errno.EPERM), self._noted(path, mode):
                self._fs.fchmod(fd, mode | OWNER_ALL)
        return fd

    @contextmanager
    def _noted(self, path: bytes, mode: int) -> Iterator[None]:
        """An error means that the mode is unchanged."""
        known = path in self.original_modes
        self.original_modes.setdefault(path, mode)
        try:
            yield
        except OSError:
            if not known:
                del self.original_modes[path]
            raise

    def forget(self, path: bytes) -> None:
        """Close the handles of a directory that is about to be removed, and of all below it."""
        below = path + b"/"
        for known in [p for p in self._open if p == path or p.startswith(below)]:
            self._fs.close(self._open.pop(known))
        self.original_modes.pop(path, None)

    def forget_all(self) -> None:
        while self._open:
            self._fs.close(self._open.popitem()[1])

    def set_modes(self, modes: Mapping[bytes, int]) -> None:
        """Set final modes durably; deepest first, so that no directory locks itself out."""
        for path in sorted(modes, key=lambda p: -p.count(b"/")):
            fd = self.open(path)
            mode = self._fs.fstat(fd).st_mode & MODE_MASK
            if mode != modes[path]:
                self.original_modes.setdefault(path, mode)
                self._fs.fchmod(fd, modes[path])
                self._fs.fsync(fd)
                if self._fs.fstat(fd).st_mode & MODE_MASK != modes[path]:
                    raise OSError(errno.EPERM, "the file system does not keep the mode", path)


def needs_recovery(vault: Vault) -> bool:
    """Whether a restore is unfinished, or is running in another process right now."""
    if vault.journal.read() is not None or vault.journal.read_note() is not None:
        return True
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        return bool(leftovers(vault, handles))


def staging_prefix(vault: Vault) -> bytes:
    """The prefix of this store's staging directories. A workspace can have several stores, one per
    user, and another store's staging directory may be in use."""
    return STAGING_PREFIX + vault.workspace_id.encode() + b"-"


def leftovers(vault: Vault, handles: DirectoryHandles) -> list[bytes]:
    """Staging directories in their usual location. Other things with such a name are not listed."""
    where = MARKER_DIRECTORY
    try:
        place_fd = handles.open(where)
    except FileNotFoundError:
        return []
    except OSError:
        where, place_fd = b"", handles.open(b"")  # something else is in its place
    prefix = staging_prefix(vault)
    names = [name for name in vault.fs.list_names(place_fd) if name.startswith(prefix)]
    return [join(where, name) for name in names if _is_directory(vault, place_fd, name)]


def _is_directory(vault: Vault, dir_fd: int, name: bytes) -> bool:
    try:
        mode = vault.fs.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(mode)
