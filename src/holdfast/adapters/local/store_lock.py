"""One writer at a time for a store, across threads and processes.

The lock is an advisory lock on a file, so it ends with its process in any case. The file also names
the holder, for the message to others that have waited too long, and keeps short notes for later
holders.

A working holder is waited for until the timeout, a stopped one (as by Ctrl-Z) only briefly. A
caller that must not be kept waiting, such as an agent's hook, gives up as soon as the holder makes
no progress. So does a thread whose process has another thread that waits longer for the same
holder.

If opening the file shows that the file system is read-only, readers share the lock. It is still
needed: the file system may be writable for another process, through another mount or from another
machine, and such a writer is kept out.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.adapters.local.store_errors import store_trouble, store_vanished, translate_os_error
from holdfast.adapters.local.store_files import read_own_file
from holdfast.domain.errors import Busy
from holdfast.ports.filesystem import FILE_MODE

if TYPE_CHECKING:
    from holdfast.ports.system import Clock

_DOING = "locking it"
_TO_WRITE = os.O_RDWR | os.O_CREAT
_TO_LOOK = os.O_RDONLY | os.O_NONBLOCK
_FIRST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.05
_DESCRIPTION_BYTES = 256
_NO_PROGRESS = "holds the store's lock and makes no progress"
_PURPOSE_LENGTH = 40
"""At most four bytes each, so that the description always fits."""


_STOPPED_S = 2.0
"""How long even patient callers wait for a stopped holder."""


class _Holder:
    """The holder of a lock, watched by a process that waits for it."""

    def __init__(self, clock: Clock, patience_s: float | None) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._seen: object = None
        self._since_ns = clock.monotonic_ns()

    def is_stuck(self, description: bytes) -> bool:
        """Whether it has made no progress for too long."""
        from holdfast.adapters.local.system import is_stopped, progress_of  # late: hardly needed

        number = _holder_in(description).get("pid")
        now_ns, seen = self._clock.monotonic_ns(), None
        if isinstance(number, int):
            seen = (number, progress_of(number))
        if seen != self._seen:
            self._seen, self._since_ns = seen, now_ns
        still_s = (now_ns - self._since_ns) / 1e9
        if self._patience_s is not None and still_s >= self._patience_s:
            return True
        return still_s >= _STOPPED_S and isinstance(number, int) and is_stopped(number)

    def worked(self) -> None:
        self._since_ns = self._clock.monotonic_ns()


class StoreLock:
    """Re-entrant for the thread that holds it."""

    def __init__(self, path: Path, clock: Clock, *, purpose: str) -> None:
        self._path = path
        self._clock = clock
        self._purpose = purpose
        self._thread_lock = threading.RLock()
        self._pause = threading.Event()
        self._depth = 0
        self._fd = -1
        self._is_shared = False
        self._is_waiting = False
        """Whether the thread with the thread lock waits for another process."""

    @contextmanager
    def hold(
        self, timeout_s: float, *, read_only: bool = False, patience_s: float | None = None
    ) -> Iterator[None]:
        """`Busy`, naming the holder, if the store is not free within `timeout_s`, or its holder
        makes no progress for `patience_s`. `StoreReadOnly` if nothing can be written, unless the
        caller is just `read_only`."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        holder = _Holder(self._clock, patience_s)
        self._acquire_thread(deadline_ns, timeout_s, holder)
        try:
            if self._depth == 0:
                self._acquire_file(deadline_ns, timeout_s, read_only, holder)
            elif self._is_shared and not read_only:
                raise translate_os_error(_read_only(self._path), _DOING)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._release_file()
        finally:
            self._thread_lock.release()

    def yield_lock(self) -> None:
        """Waiting processes try again after `_LONGEST_WAIT_S` at the latest."""
        self._pause.wait(2 * _LONGEST_WAIT_S)

    @property
    def is_nested(self) -> bool:
        """Whether the holder already held it when it last took it."""
        return self._depth > 1

    @property
    def is_shared(self) -> bool:
        """Whether a reader holds it, because nothing can be written."""
        return self._is_shared

    def note(self, place: int, data: bytes) -> None:
        """Leave a note for later holders; only while held. Skipped on a full disk."""
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, data, _DESCRIPTION_BYTES + place)

    def note_afresh(self, data: bytes) -> None:
        """Replace all notes; only while held."""
        os.ftruncate(self._fd, _DESCRIPTION_BYTES)
        os.pwrite(self._fd, data, _DESCRIPTION_BYTES)

    def read_notes(self, size: int) -> bytes:
        """The last holders' notes, held or not; empty if there is no such file."""
        try:
            return read_own_file(self._path)[_DESCRIPTION_BYTES : _DESCRIPTION_BYTES + size]
        except OSError:
            return b""

    def takes_writes(self) -> bool:
        """Whether a writer can hold it."""
        try:
            os.close(self._open(_TO_WRITE))
        except OSError as error:
            return error.errno != errno.EROFS
        return True

    def _open(self, flags: int) -> int:
        return os.open(self._path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)

    def _open_to_lock(self, *, read_only: bool) -> tuple[int, bool]:
        """The file, and whether its lock is a shared one."""
        try:
            return self._open(_TO_WRITE), False
        except OSError as error:
            if error.errno != errno.EROFS or not read_only:
                raise
            # Shared, because some systems refuse an exclusive lock on a file opened for reading.
            with contextlib.suppress(FileNotFoundError):
                return self._open(_TO_LOOK), True
            raise

    def _acquire_thread(self, deadline_ns: int, timeout_s: float, holder: _Holder) -> None:
        wait_s = min(max(timeout_s, 0.001), _LONGEST_WAIT_S)
        while not self._thread_lock.acquire(timeout=wait_s):
            if self._clock.monotonic_ns() >= deadline_ns:
                raise Busy(
                    "another thread of this process has used the store for more than "
                    f"{timeout_s:g} s"
                )
            if not self._is_waiting:
                holder.worked()
                continue
            description = self._read_description()
            if holder.is_stuck(description):
                raise self._busy(description, _NO_PROGRESS)

    def _acquire_file(
        self, deadline_ns: int, timeout_s: float, read_only: bool, holder: _Holder
    ) -> None:
        with store_trouble(_DOING):
            try:
                fd, shared = self._open_to_lock(read_only=read_only)
            except FileNotFoundError:  # opening creates the file, but not its directory
                raise store_vanished(self._path.parent) from None
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        wait_s = _FIRST_WAIT_S
        try:
            while True:
                try:
                    fcntl.flock(fd, how | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self._is_waiting = True
                    description = os.pread(fd, _DESCRIPTION_BYTES, 0)
                    if self._clock.monotonic_ns() >= deadline_ns:
                        what = f"has held the store's lock for more than {timeout_s:g} s"
                        raise self._busy(description, what) from None
                    if holder.is_stuck(description):
                        raise self._busy(description, _NO_PROGRESS) from None
                    self._pause.wait(wait_s)
                    wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
            if not shared and _is_ours_alone(fd):
                with contextlib.suppress(OSError):  # on a full disk, it works unnamed
                    os.pwrite(fd, self._description(), 0)
        except BaseException:
            os.close(fd)
            raise
        finally:
            self._is_waiting = False
        self._fd, self._is_shared = fd, shared

    def _read_description(self) -> bytes:
        try:
            return read_own_file(self._path)[:_DESCRIPTION_BYTES]
        except OSError:
            return b""

    def _release_file(self) -> None:
        fd, self._fd, self._is_shared = self._fd, -1, False
        # Unlocked explicitly, not only by closing: a process forked meanwhile has the file open
        # too.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

    def _description(self) -> bytes:
        purpose = self._purpose[:_PURPOSE_LENGTH]
        said = {"pid": os.getpid(), "purpose": purpose, "since_ns": self._clock.now_ns()}
        text = json.dumps(said, ensure_ascii=False)
        return text.encode("utf-8", "replace").ljust(_DESCRIPTION_BYTES)

    def _busy(self, description: bytes, what: str) -> Busy:
        from holdfast.adapters.local.system import is_ours  # no save needs it

        who = "another process"
        hint = f"wait for it to finish, or find it: fuser {self._path}"
        with contextlib.suppress(ValueError, KeyError, TypeError):
            holder = _holder_in(description)
            number = int(holder["pid"])
            # On a full disk, the previous holder may still be recorded, and its number may belong
            # to another process.
            if is_ours(number):
                who = f"process {number} ({holder['purpose']})"
                hint = f"wait for it, or end it if it hangs: kill {number}"
        return Busy(f"{who} {what}", hint=hint)


def _holder_in(description: bytes) -> dict[str, Any]:
    """The holder's description of itself; empty if invalid."""
    try:
        described = json.loads(description)
    except ValueError:
        return {}
    return described if isinstance(described, dict) else {}


def _read_only(path: Path) -> OSError:
    return OSError(errno.EROFS, os.strerror(errno.EROFS), os.fspath(path))


def _is_ours_alone(fd: int) -> bool:
    """Whether writing here changes nothing else: a second name may belong to any file."""
    status = os.fstat(fd)
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1
