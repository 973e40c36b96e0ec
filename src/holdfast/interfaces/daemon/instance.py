"""One daemon at a time, which runs the installed code and serves only its user.

The daemon holds the lock as long as it lives, so a socket without a held lock is stale and is
replaced. The lock file is never removed: two processes could then lock different files.

An outdated daemon exits in favour of a new one. An installer replaces all files, even for the same
version, so one file is checked on each request. In an editable installation a single file may
change, so all are checked, every few seconds at most.

This module also has the daemon's log.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import holdfast
from holdfast.interfaces.daemon.address import NoPlace, candidates, require_private

_BACKLOG = 128
_BETWEEN_LOOKS_S = 5.0

Stamp = tuple[str, int, int, int]
_log_limits: list[int] = []


class AlreadyRunning(Exception):
    """Another daemon holds the lock; `pid` if it is known."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"process {pid}" if pid else "another process")
        self.pid = pid


class Listener:
    """A bound socket that only its user can reach, and its lock."""

    def __init__(self, path: str) -> None:
        """Raises `AlreadyRunning`, `NoPlace` or OSError."""
        require_private(os.path.dirname(path))
        self.path = path
        with contextlib.ExitStack() as opened:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock = os.open(path + ".lock", flags, 0o600)
            opened.callback(os.close, self._lock)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunning(_pid_in(self._lock)) from None
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            opened.callback(self.socket.close)
            self.socket.bind(path)
            opened.callback(os.unlink, path)
            os.chmod(path, 0o600)
            self.socket.listen(_BACKLOG)
            self.socket.setblocking(False)
            self._identity = _identity(path)
            opened.pop_all()

    def is_reachable(self) -> bool:
        """Whether the socket is still at its path."""
        return _identity(self.path) == self._identity

    def close(self) -> None:
        """Can be called repeatedly. Afterwards another daemon can start."""
        lock, self._lock = self._lock, -1
        if lock < 0:
            return
        if self.is_reachable():
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        self.socket.close()
        os.close(lock)


def listen(environment: Mapping[str, str]) -> Listener:
    """Listen at the first address that works; some file systems lack sockets or locks. Network file
    systems come last: a daemon on another machine would hold the lock, but could not be reached."""
    reasons = []
    for path in sorted(candidates(environment), key=_is_on_a_network):
        try:
            return Listener(path)
        except NoPlace as error:
            reasons.append(str(error))
        except OSError as error:
            reasons.append(f"{path}: {error.strerror}")
    raise NoPlace("; ".join(reasons) or "every possible path is too long for a socket")


def _is_on_a_network(path: str) -> bool:
    from holdfast.api.automation import is_on_a_network

    return is_on_a_network(Path(path).parent)


def _pid_in(fd: int) -> int | None:
    try:
        return int(os.pread(fd, 20, 0))
    except (OSError, ValueError):
        return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class CodeOnDisk:
    """The state of the code files when the process started."""

    def __init__(self) -> None:
        self._package = os.path.dirname(os.path.abspath(holdfast.__file__))
        self._first = _stamp(self._main_file)
        self._all = hash(frozenset(_stamps(self._package)))
        self._looked_at = time.monotonic()

    @property
    def _main_file(self) -> str:
        return os.path.join(self._package, "__init__.py")

    def was_reinstalled(self) -> bool:
        return _stamp(self._main_file) != self._first

    def was_edited(self) -> bool:
        """Checks at most every few seconds; False in between."""
        if time.monotonic() - self._looked_at < _BETWEEN_LOOKS_S:
            return False
        found = hash(frozenset(_stamps(self._package)))
        self._looked_at = time.monotonic()
        return found != self._all


def _stamps(directory: str) -> Iterator[Stamp]:
    for above, names, files in os.walk(directory):
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if name.endswith(".py") and (stamp := _stamp(os.path.join(above, name))) is not None:
                yield stamp


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_ino, status.st_mtime_ns, status.st_size


def is_newer(one: str, other: str) -> bool:
    """Whether a version is later; False if one cannot be parsed."""
    try:
        return [int(part) for part in one.split(".")] > [int(part) for part in other.split(".")]
    except ValueError:
        return False


def bound_log(most_bytes: int = 1 << 20) -> None:
    """Limit the size of the log on standard error, since a daemon may run for months. A full log is
    truncated."""
    _log_limits[:] = [most_bytes]


def log(text: str) -> None:
    """A line that explains why something was not done; never file content."""
    with contextlib.suppress(OSError, ValueError):
        if _log_limits and os.fstat(2).st_size > _log_limits[0]:
            os.ftruncate(2, 0)  # it is opened for appending
        moment = datetime.now().astimezone().isoformat(timespec="seconds")
        print(f"{moment} {text.rstrip()}", file=sys.stderr, flush=True)
