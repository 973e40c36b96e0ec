"""Mounting a file system for a while, where the user may do that."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(directory: Path, size: str = "16m") -> Iterator[None]:
    """An empty file system in memory over the directory."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "holdfast-test", str(directory)],
        check=True,
        capture_output=True,
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True, capture_output=True)


@functools.cache
def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as place:
        try:
            with mounted(Path(place)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False
