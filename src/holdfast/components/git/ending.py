"""Ending a git with everything that it has started: hooks, and what hooks have started.

    stop all of them, until no new one appears → kill what git has started, and wait for that
    → ask git to end, which then removes its lock files → kill it when it does not

They share our terminal, because a signature may ask for a passphrase there, so they are no process
group of their own. Where there is no /proc only git itself is ended; nothing waits for the rest.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess

_PATIENCE_S = 10.0


def end_with_children(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    stopped: set[int] = set()
    while found := {process.pid, *_descendants(process.pid)} - stopped:
        for pid in found:
            _send(pid, signal.SIGSTOP)
        stopped |= found
    _kill(stopped - {process.pid})
    _send(process.pid, signal.SIGTERM)
    _send(process.pid, signal.SIGCONT)
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kill(pids: set[int]) -> None:
    """And wait until they have ended: they are not our own children."""
    handles = [handle for pid in pids if (handle := _handle(pid)) is not None]
    try:
        for pid in pids:
            _send(pid, signal.SIGKILL)
        for handle in handles:
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            ended.poll(_PATIENCE_S * 1000)
    finally:
        for handle in handles:
            os.close(handle)


def _handle(pid: int) -> int | None:
    """Ready to be read when the process has ended."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None  # no such process any more, or no such system


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return set()
    for name in names:
        if name.isdigit() and (above := _parent(name)) is not None:
            children.setdefault(above, []).append(int(name))
    found: set[int] = set()
    pending = [pid]
    while pending:
        below = children.get(pending.pop(), [])
        found.update(below)
        pending += below
    return found


def _parent(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            # The name of the program is in brackets, and may hold anything.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
