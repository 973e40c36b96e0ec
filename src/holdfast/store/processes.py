"""Telling whether a process that began something is still the one that lives under its number."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_STARTED_FIELD = 19
"""Of what follows the name in /proc/PID/stat: when the process began, in ticks since boot."""


def own_identity() -> str:
    """This process; also after a restart of the machine no other one has the same."""
    return f"{os.getpid()} {_beginning(os.getpid())}"


def is_alive(identity: str) -> bool:
    """Whether that process lives. Where the system does not tell when a process began, any process
    under its number passes for it."""
    number, _, beginning = identity.partition(" ")
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return False  # somebody else's, so not the one that used our store
    return _beginning(int(number)) == beginning


def _beginning(number: int) -> str:
    try:
        told = (_PROC / str(number) / "stat").read_bytes().rpartition(b")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        if told[0] == b"Z":
            return "gone"
        return f"{told[_STARTED_FIELD].decode()} {boot}"
    except (OSError, IndexError, ValueError):
        return "unknown"
