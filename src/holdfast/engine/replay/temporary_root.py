"""A private directory for a checkpoint's files, written on demand.

    create it with mode 0700 and lock it → write requested files, read-only → remove everything
    when closed, when Python exits, and on SIGTERM and SIGHUP unless the program handles them

Guarantees: no other user can read it. Nothing in it is writable. Every write goes through handles
on directories created here, so nothing outside is reached. The next process that creates such a
directory removes leftovers of killed ones. Not guaranteed: cleanup after a killed process, if no
other one follows.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from holdfast.domain.errors import NoSpace, Refused
from holdfast.domain.paths import basename, join, parent
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import FULL, Vault
from holdfast.ports.filesystem import DIRECTORY_FLAGS, Filesystem, write_all

PREFIX = b"holdfast-replay-"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN, _CLOSED = 0o700, 0o500
_READABLE, _RUNNABLE = 0o400, 0o500
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class TemporaryRoot:
    """One directory in `place`, created at once and removed by `close`."""

    def __init__(self, vault: Vault, place: Path) -> None:
        self._vault = vault
        self._fs = vault.fs
        place = Path(os.path.realpath(place))
        if place == vault.workspace or vault.workspace in place.parents:
            raise Refused(
                f"cannot show files in {place}: it is inside the workspace",
                hint="set TMPDIR to a directory outside it",
            )
        try:
            place_fd = self._fs.open(os.fsencode(place), DIRECTORY_FLAGS)
            try:
                _remove_left_over(self._fs, place_fd)
                name, self._fd = self._make(place_fd)
            except BaseException:
                self._fs.close(place_fd)
                raise
        except OSError as error:
            raise _trouble(error) from error
        self.path = place / os.fsdecode(name)
        self._handles = DirectoryHandles(self._fs, self._fd)
        self._removal = weakref.finalize(
            self, _remove, self._fs, self._handles, place_fd, name, self._fd, os.getpid()
        )
        _install_signal_handlers(self)

    def _make(self, place_fd: int) -> tuple[bytes, int]:
        """A directory and a locked handle on it. Retries if a sweep removed it before the lock."""
        while True:
            name = PREFIX + self._vault.ids.new_id().encode()
            self._fs.mkdir(name, _OPEN, dir_fd=place_fd)
            fd = self._fs.open(name, DIRECTORY_FLAGS, dir_fd=place_fd)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if _is_same_file(self._fs, name, place_fd, fd):
                self._fs.fchmod(fd, _CLOSED)
                return name, fd
            self._fs.close(fd)

    def make_directory(self, path: bytes) -> Path:
        try:
            self._make_directories(path)
        except OSError as error:
            raise _trouble(error) from error
        return self.path / os.fsdecode(path)

    def write(self, path: bytes, entry: Entry) -> Path:
        """Create the entry at `path` with its parent directories; an existing one is left alone. A
        directory is created empty."""
        try:
            self._make_directories(parent(path))
            with self._opened(parent(path)) as dir_fd:
                if not _exists(self._fs, basename(path), dir_fd):
                    self._create(basename(path), entry, dir_fd)
        except OSError as error:
            raise _trouble(error) from error
        return self.path / os.fsdecode(path)

    def _make_directories(self, path: bytes) -> None:
        made = b""
        for name in path.split(b"/") if path else ():
            with self._opened(made) as dir_fd:
                if not _exists(self._fs, name, dir_fd):
                    self._fs.mkdir(name, _CLOSED, dir_fd=dir_fd)
            made = join(made, name)

    def _create(self, name: bytes, entry: Entry, dir_fd: int) -> None:
        if isinstance(entry, DirectoryEntry):
            self._fs.mkdir(name, _CLOSED, dir_fd=dir_fd)
        elif isinstance(entry, SymlinkEntry):
            self._fs.symlink(entry.target, name, dir_fd=dir_fd)
            self._fs.set_times(name, entry.mtime_ns, dir_fd=dir_fd)
        else:
            self._create_file(name, entry, dir_fd)

    def _create_file(self, name: bytes, entry: FileEntry, dir_fd: int) -> None:
        """Named only when complete, so that damaged content leaves nothing behind."""
        waiting = b"." + self._vault.ids.new_id().encode()
        fd = self._fs.open(waiting, _CREATE, 0o600, dir_fd=dir_fd)
        try:
            try:
                for piece in read_content(self._vault.objects, entry):
                    write_all(self._fs, fd, piece)
                self._fs.fchmod(fd, _RUNNABLE if entry.mode & 0o111 else _READABLE)
            finally:
                self._fs.close(fd)
            self._fs.set_times(waiting, entry.mtime_ns, dir_fd=dir_fd)
            self._fs.rename_new(waiting, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        except BaseException:
            with contextlib.suppress(OSError):
                self._fs.unlink(waiting, dir_fd=dir_fd)
            raise

    @contextmanager
    def _opened(self, path: bytes) -> Iterator[int]:
        """A handle on a directory that is writable within the block."""
        fd = self._handles.open(path)
        self._fs.fchmod(fd, _OPEN)
        try:
            yield fd
        finally:
            self._fs.fchmod(fd, _CLOSED)

    def close(self) -> None:
        self._removal()
        _live.discard(self)
        if not _live:
            _remove_signal_handlers()


_live: weakref.WeakSet[TemporaryRoot] = weakref.WeakSet()


def _install_signal_handlers(root: TemporaryRoot) -> None:
    """One signal handler for all roots of the process, unless the program has its own."""
    _live.add(root)
    if threading.current_thread() is threading.main_thread():
        for ending in _ENDINGS:
            if signal.getsignal(ending) is signal.SIG_DFL:
                signal.signal(ending, _handle_signal)


def _remove_signal_handlers() -> None:
    if threading.current_thread() is threading.main_thread():
        for ending in _ENDINGS:
            if signal.getsignal(ending) is _handle_signal:
                signal.signal(ending, signal.SIG_DFL)


def _handle_signal(number: int, frame: FrameType | None) -> None:
    """Remove everything, then end as if there were no handler."""
    for root in list(_live):
        with contextlib.suppress(OSError):
            root.close()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _remove(
    fs: Filesystem, handles: DirectoryHandles, place_fd: int, name: bytes, fd: int, owner: int
) -> None:
    """A forked process has the handles too, but must not remove its parent's directory."""
    try:
        if os.getpid() == owner:
            handles.forget_all()
            _remove_tree(fs, place_fd, name, fd)
    finally:
        fs.close(fd)
        fs.close(place_fd)


def _remove_tree(fs: Filesystem, place_fd: int, name: bytes, fd: int) -> None:
    _empty(fs, fd)
    if _is_same_file(fs, name, place_fd, fd):
        fs.rmdir(name, dir_fd=place_fd)


def _empty(fs: Filesystem, fd: int) -> None:
    fs.fchmod(fd, _OPEN)
    for name in fs.list_names(fd):
        status = fs.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            fs.unlink(name, dir_fd=fd)
            continue
        child = fs.open(name, DIRECTORY_FLAGS, dir_fd=fd)
        try:
            _empty(fs, child)
        finally:
            fs.close(child)
        fs.rmdir(name, dir_fd=fd)


def _remove_left_over(fs: Filesystem, place_fd: int) -> None:
    """Remove directories of killed processes, whose locks ended with them."""
    for name in fs.list_names(place_fd):
        if not name.startswith(PREFIX):
            continue
        with contextlib.suppress(OSError):
            fd = fs.open(name, DIRECTORY_FLAGS, dir_fd=place_fd)
            try:
                if fs.fstat(fd).st_uid == os.geteuid():
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove_tree(fs, place_fd, name, fd)
            finally:
                fs.close(fd)


def _is_same_file(fs: Filesystem, name: bytes, place_fd: int, fd: int) -> bool:
    try:
        found = fs.stat(name, dir_fd=place_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, fs.fstat(fd))


def _exists(fs: Filesystem, name: bytes, dir_fd: int) -> bool:
    try:
        fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _trouble(error: OSError) -> NoSpace | Refused:
    if error.errno in FULL:
        return NoSpace(
            "not enough space to show the files",
            hint="free some, or set TMPDIR to a directory on another disk",
        )
    return Refused(
        f"cannot show the files: {error.strerror}",
        hint="set TMPDIR to a directory that you can write to",
    )
