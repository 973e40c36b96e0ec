"""The machine: its clock, its randomness, and its processes with their locks."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.ids import CHECKPOINT_ID_LENGTH
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    import subprocess

random_bytes = os.urandom
"""From the kernel, so that forked processes do not get the same."""


class SystemClock:
    @staticmethod
    def now_ns() -> int:
        return time.time_ns()

    @staticmethod
    def monotonic_ns() -> int:
        return time.monotonic_ns()


class RandomIds:
    @staticmethod
    def new_id() -> str:
        return os.urandom(CHECKPOINT_ID_LENGTH // 2).hex()


_PROC = Path("/proc")
_LOCKS = _PROC / "locks"
_SQLITE_SUFFIXES = ("", "-shm", "-wal")
_SHELLS = frozenset(b"sh bash dash zsh fish ksh mksh ash busybox env timeout nice".split())
_HIGHEST = 64
_WORKED_FIELD = 11
_FLAGS_FIELD = 6
_EXITING = 0x4
"""PF_EXITING of the Linux kernel: the process has begun to end, and runs no more of its code."""
_STARTED_FIELD = 19
"""The field after the name in /proc/PID/stat with the start time, in ticks since boot."""


def own_identity() -> str:
    """This process; no other one has the same identity, even after a reboot."""
    return f"{os.getpid()} {_beginning(os.getpid())}"


def is_alive(identity: str) -> bool:
    """Whether that process is running. If the system does not report when a process started, any
    process with its number counts."""
    number, _, beginning = identity.partition(" ")
    if not number.isdecimal() or not is_ours(int(number)):
        return False
    return _beginning(int(number)) == beginning


def is_ours(number: int) -> bool:
    """Whether a process with this number is running for this user."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return False  # another user's process, so it cannot use this user's store
    return number > 0


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, as by Ctrl-Z; False if the system does not report it."""
    try:
        described = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return False
    return described.rpartition(b")")[2].split()[:1] == [b"T"]


def progress_of(pid: int) -> tuple[bytes, ...] | None:
    """Changes whenever a process does something: its CPU time, and its bytes read and written. The
    same value twice means no progress; None if the system does not report it."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        worked = (fields[_WORKED_FIELD], fields[_WORKED_FIELD + 1])
    except (OSError, IndexError):
        return None
    try:
        return (*worked, (_PROC / str(pid) / "io").read_bytes())
    except OSError:
        return worked


def own_line() -> frozenset[str]:
    """This process, its parent and all above; only this one if the system does not report
    parents."""
    return frozenset([own_identity(), *(_identity(n) for n in _above(os.getpid()))])


def agent_above(number: int) -> str | None:
    """The program that started a process, skipping shells in between. None if unknown. Also None
    for another user's program, like the `su` or `sudo` above an agent that is a shell script: it
    cannot be checked whether that is still running."""
    for above in _above(number):
        fields = _process_stat(above)
        if fields is not None and fields.name not in _SHELLS:
            return _identity(above) if is_ours(above) else None
    return None


def ask_to_end(identity: str, *, wait_s: float) -> bool | None:
    """A handle on the process is opened before its identity is checked, so that the signal reaches
    no other process that gets its number meanwhile. Without such handles, no signal is sent."""
    import select
    import signal

    if not hasattr(os, "pidfd_open") or identity in own_line():
        return None
    try:
        handle = os.pidfd_open(int(identity.partition(" ")[0]))
    except (OSError, ValueError, OverflowError):
        return None
    try:
        if not is_alive(identity):
            return None
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        return bool(waiting.poll(wait_s * 1000))
    except OSError:
        return None
    finally:
        os.close(handle)


def _identity(number: int) -> str:
    return f"{number} {_beginning(number)}"


def _above(number: int) -> Iterator[int]:
    """From the parent upwards."""
    for _ in range(_HIGHEST):
        fields = _process_stat(number)
        if fields is None or fields.parent <= 0:
            return
        number = fields.parent
        yield number


class _ProcessStat(NamedTuple):
    name: bytes
    parent: int


def _process_stat(number: int) -> _ProcessStat | None:
    try:
        before, _, behind = (_PROC / str(number) / "stat").read_bytes().rpartition(b")")
        return _ProcessStat(before.partition(b"(")[2], int(behind.split()[1]))
    except (OSError, IndexError, ValueError):
        return None


@cache
def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()


def _beginning(number: int) -> str:
    try:
        fields = (_PROC / str(number) / "stat").read_bytes().rpartition(b")")[2].split()
        # A killed daemon closes its connection before it is a zombie, and the hook asks at once.
        if fields[0] == b"Z" or int(fields[_FLAGS_FIELD]) & _EXITING:
            return "gone"
        return f"{fields[_STARTED_FIELD].decode()} {_boot()}"
    except (OSError, IndexError, ValueError):
        return "unknown"


def start_python(
    program: str, pass_fds: tuple[int, ...], *arguments: str
) -> subprocess.Popen[bytes]:
    """Run a program in a new Python, with pipes to its input and output. Its first argument is the
    module search path: this process's own, but never the current directory, which may be any
    workspace. The given arguments follow."""
    import subprocess  # late: no save of plain files needs it

    places = [place for place in sys.path if isinstance(place, str) and os.path.isabs(place)]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program, json.dumps(places), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=pass_fds,
        bufsize=0,
    )


def holder_of(database: Path) -> int | None:
    """Another process that has a lock on an SQLite database or its log; None if unknown.

    Read from the kernel's list of locks, never by opening the file: closing it again would drop the
    locks that this process has on it.
    """
    files = set()
    for suffix in _SQLITE_SUFFIXES:
        with suppress(OSError):
            found = database.with_name(database.name + suffix).stat()
            device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
            files.add(f"{device}:{found.st_ino}")
    try:
        lines = _LOCKS.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    readers: list[int] = []
    for line in lines:
        # 1: POSIX  ADVISORY  WRITE 4711 fe:01:123456 128 128
        fields = line.split()
        if len(fields) < 8 or fields[1] != "POSIX" or not fields[4].isdecimal():
            continue
        if fields[5] in files and int(fields[4]) not in (0, os.getpid()):
            if fields[3] == "WRITE":  # readers are most likely waiting too
                return int(fields[4])
            readers.append(int(fields[4]))
    return readers[0] if readers else None
