"""SQLite databases that other programs have open: hold, pause or overwrite one.

**Hold.** Keeps a SQLite read transaction open. In rollback mode, no writer can then change the
file. With a write-ahead log, writers continue, but the log cannot be restarted. So a copy of the
file and then of the log is one state, whatever is moved between them meanwhile.

Not guaranteed: closing any handle of a file drops the locks that the same process has on it. The
caller reads the database file first, and files with locks of their own (`-shm`) last.

**Pause.** The moment between two transactions of a database with a rollback journal. It takes the
lock that every writer needs for a whole transaction, as SQLite itself would. While it is held, no
journal beside the file belongs to a transaction. A writer that still has the file open after it was
replaced notices that before it creates a journal, and writes nothing.

Not covered by a pause: a database with a write-ahead log, whose writers use other locks.

**In use.** Whether another handle of the database is open. Linux grants a write lease only without
one. Elsewhere, or for another user's file, there is only a sign: a database with a write-ahead log
has shared memory while programs use it.

**Overwrite.** In a separate process. File locks belong to a process, and end with the first handle
of the file that it closes. So a program that uses a database and Holdfast in one process would lose
its locks, and ours would not exclude it. The process ends with its parent, and SQLite rolls its
transaction back. While a large database takes long, it sends blanks before its answer, to show that
it is alive. If it is silent for a minute, it is killed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import stat
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import apsw

from holdfast.adapters.local.database_exact import take_lease
from holdfast.adapters.local.system import start_python
from holdfast.domain.sqlite_files import (
    COMPANIONS,
    HEADER,
    SHARED_MEMORY,
    DatabaseJob,
    PerhapsWritten,
    Written,
)

_TRIES = 6_000
_BETWEEN_TRIES_S = 0.0005
"""SQLite's own busy handler sleeps so long that it rarely meets the gaps of a busy writer."""

_GET_PATH = 50
_PATH_BYTES = 1024


@contextmanager
def hold(name: bytes, dir_fd: int) -> Iterator[bool]:
    """Whether it is held: False if it is not a database, or cannot be read now."""
    connection = None
    with contextlib.suppress(apsw.Error, OSError, UnicodeError):
        connection = _reading(name, dir_fd)
    try:
        yield connection is not None
    finally:
        if connection is not None:
            connection.close()


def _reading(name: bytes, dir_fd: int) -> apsw.Connection:
    path = os.path.join(path_of(dir_fd), name)
    require_same(path, name, dir_fd)
    require_plain_beside(name, dir_fd)
    connection = apsw.Connection(path.decode(), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        pause = threading.Event()
        connection.set_busy_handler(
            lambda tried: not pause.wait(_BETWEEN_TRIES_S) and tried < _TRIES
        )
        # The last connection to close would otherwise move the log into the database.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        require_same(path, name, dir_fd)
    except BaseException:
        connection.close()
        raise
    return connection


def path_of(dir_fd: int) -> bytes:
    if sys.platform == "darwin":
        import fcntl

        return fcntl.fcntl(dir_fd, _GET_PATH, bytes(_PATH_BYTES)).rstrip(b"\0")
    return os.readlink(b"/proc/self/fd/%d" % dir_fd)


def require_same(path: bytes, name: bytes, dir_fd: int) -> None:
    """SQLite opens by path, so the path must lead to the same file as the handle."""
    by_path = os.stat(path, follow_symlinks=False)
    by_handle = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if not stat.S_ISREG(by_path.st_mode) or not os.path.samestat(by_path, by_handle):
        raise FileNotFoundError(path)


def require_plain_beside(name: bytes, dir_fd: int) -> None:
    """SQLite opens anything named like its log or journal, and would block on a pipe."""
    for suffix in COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            beside = os.stat(name + suffix, dir_fd=dir_fd, follow_symlinks=False)
            if not stat.S_ISREG(beside.st_mode):
                raise OSError(errno.EINVAL, f"{suffix.decode()} file is not a regular file")


_READ_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FLAGS = os.O_RDWR | _READ_FLAGS
_RESERVED_BYTE = 0x40000001
_BUSY = (errno.EAGAIN, errno.EACCES)
_PAUSE_TRIES = 4_000
_BETWEEN_PAUSE_TRIES_S = 0.0005

# An open file description lock if available: a process lock ends with any handle it closes.
_SET_LOCK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)


def lock_request(system: str, write_lock: int) -> bytes | None:
    """The `struct flock` of a system for the lock that every writer needs; `write_lock` is its
    number for `F_WRLCK`. None if its layout is unknown."""
    if system == "linux":  # type, whence, start, length, process
        return struct.pack("hhqqi4x", write_lock, os.SEEK_SET, _RESERVED_BYTE, 1, 0)
    if system == "darwin":  # start, length, process, type, whence
        return struct.pack("qqihh", _RESERVED_BYTE, 1, 0, write_lock, os.SEEK_SET)
    return None


@contextmanager
def pause(name: bytes, dir_fd: int) -> Iterator[bool]:
    """Whether no transaction is in progress, for the block. Also True for a file that is not a
    database, or that cannot be written."""
    fd = None
    with contextlib.suppress(OSError):
        fd = os.open(name, _FLAGS, dir_fd=dir_fd)
    try:
        yield fd is None or os.pread(fd, len(HEADER), 0) != HEADER or _locked(fd)
    finally:
        if fd is not None:
            os.close(fd)


def _locked(fd: int) -> bool:
    request = lock_request(sys.platform, fcntl.F_WRLCK)
    wait = threading.Event()
    for _ in range(_PAUSE_TRIES):
        try:
            if request is not None:
                fcntl.fcntl(fd, _SET_LOCK, request)
            else:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _RESERVED_BYTE)
        except OSError as error:
            if error.errno not in _BUSY:
                return True  # a file system without locks, so no other program has any either
            wait.wait(_BETWEEN_PAUSE_TRIES_S)
        else:
            return True
    return False


def is_in_use(name: bytes, dir_fd: int) -> bool:
    try:
        fd = os.open(name, os.O_RDONLY | _READ_FLAGS, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        if os.pread(fd, len(HEADER), 0) != HEADER:
            return False
        leased = take_lease(fd)
    except OSError:
        return False
    finally:
        os.close(fd)
    return _has_shared_memory(name, dir_fd) if leased is None else not leased


def _has_shared_memory(name: bytes, dir_fd: int) -> bool:
    try:
        beside = os.stat(name + SHARED_MEMORY, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(beside.st_mode)


_PROGRAM = """
import json, sys
sys.path = json.loads(sys.argv[1])
from holdfast.adapters.local.live_database import serve
serve()
"""

_INPUT, _OUTPUT = 0, 1
_PIECE_BYTES = 1 << 16
_HEARTBEAT_S = 1.0
_LONGEST_SILENCE = 60


def overwrite_in_process(job: DatabaseJob, dir_fd: int, area: int) -> Written:
    """Like `database_overwrite.overwrite`; an `OSError` if the process fails."""
    import pickle  # late: a save that holds a database starts no process

    with start_python(_PROGRAM, (dir_fd, area)) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(pickle.dumps((dir_fd, area, job)))
            said = _read_answer(process.stdout)  # its input stays open, because it ends with that
        finally:
            process.kill()
    answer = None
    with contextlib.suppress(Exception):  # invalid bytes can fail in any way
        answer = pickle.loads(said)
    if isinstance(answer, Written):
        return answer
    if not isinstance(answer, OSError):
        why = "the process that writes the database has died"
        raise PerhapsWritten(errno.EIO, why)
    raise answer


def _read_answer(output: IO[bytes]) -> bytes:
    """Everything it sends until it ends. Silence is counted in short waits, so that being stopped
    together, as by Ctrl-Z, counts as one of them."""
    said, silent = b"", 0
    ready = select.poll()
    ready.register(output, select.POLLIN)
    while silent < _LONGEST_SILENCE:
        if not ready.poll(_HEARTBEAT_S * 1000):
            silent += 1
            continue
        piece = os.read(output.fileno(), _PIECE_BYTES)
        if not piece:
            return said
        said, silent = (said + piece).lstrip(), 0
    why = "the process that writes the database hung and was killed"
    raise PerhapsWritten(errno.ETIMEDOUT, why)


def _exit_with_parent() -> None:
    os.read(_INPUT, 1)
    os._exit(1)


def _send_heartbeats() -> None:
    pause = threading.Event()
    while not pause.wait(_HEARTBEAT_S):
        os.write(_OUTPUT, b" ")


def failure_of(error: Exception) -> OSError:
    """The error as the parent gets it."""
    if isinstance(error, OSError):
        kind = PerhapsWritten if isinstance(error, PerhapsWritten) else OSError
        return kind(error.errno or errno.EIO, error.strerror or str(error))
    # SQLite reports a failed backup as "not an error", so the code is used.
    if isinstance(error, apsw.FullError):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    known = apsw.mapping_extended_result_codes | apsw.mapping_result_codes
    what = known.get(getattr(error, "extendedresult", 0), error)
    return PerhapsWritten(errno.EIO, f"SQLite cannot write to the database ({what})")


def serve() -> None:
    """The other side: one job from standard input, one answer to standard output."""
    import pickle

    from holdfast.adapters.local.database_overwrite import overwrite

    with open(_INPUT, "rb", closefd=False) as requests:
        dir_fd, area, job = pickle.load(requests)
    for duty in (_exit_with_parent, _send_heartbeats):
        threading.Thread(target=duty, daemon=True).start()
    answer: Written | OSError
    try:
        answer = overwrite(job, dir_fd, area)
    except (OSError, apsw.Error) as error:
        answer = failure_of(error)
    os.write(_OUTPUT, pickle.dumps(answer))
    os._exit(0)
