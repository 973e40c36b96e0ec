"""The disk in memory: the one place below /dev that holds files of users.

Files directly in it may be the shared memory of running programs, whose names have no directory.
Replacing such a file would disconnect those programs, so only its directories are for users.
"""

from __future__ import annotations

MEMORY_DISK = "/dev/shm"


def is_in_memory(path: str) -> bool:
    """Whether the absolute path is the memory disk or below it."""
    return path == MEMORY_DISK or path.startswith(MEMORY_DISK + "/")


def is_device(path: str) -> bool:
    """Whether the path is below /dev and is no user file."""
    return path.startswith("/dev/") and not is_in_memory(path)
